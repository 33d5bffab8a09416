//===- World.h - Ranks for a test of control --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H
#define CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H

#include "runtime/control/Control.h"

#include <chrono>
#include <functional>
#include <ostream>
#include <vector>

namespace chimera::runtime::test {

/// A timeout for waits that must not time out.
inline constexpr std::chrono::seconds kTimeout(100);

/// Describes the Control objects of a test: their kind, and the number of ranks
/// that they connect.
struct World {
  enum Kind { InProcess, Tcp } kind;
  uint32_t ranks;
};
void PrintTo(const World &world, std::ostream *stream);

/// The worlds to test with.
std::vector<World> worlds();

/// When a rank destroys its Control, and so leaves the job. Together: when
/// `body` has returned at all ranks. AtOnce: when `body` has returned at this
/// rank.
enum class WhenToLeave { Together, AtOnce };
/// Runs `body` once for each rank of a world. Each call has its own thread and
/// its own Control.
void onEachRank(const World &world, const std::function<void(Control &)> &body,
                WhenToLeave leave = WhenToLeave::Together);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H
