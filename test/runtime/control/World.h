//===- World.h - Ranks for a test of control --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H
#define CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H

#include "runtime/control/Control.h"

#include <functional>
#include <ostream>
#include <vector>

namespace chimera::runtime::test {

/// Control of one kind among so many ranks.
struct World {
  enum Kind { InProcess, Tcp, Mpi } kind;
  uint32_t ranks;
};
void PrintTo(const World &world, std::ostream *stream);

/// The worlds to test with: several in one process, or that of the MPI job that
/// this process is part of.
std::vector<World> worlds();

/// Runs `body` once for each rank of a world, with a control of its own: on
/// threads, or in an MPI job once, for this process's rank.
void onEachRank(const World &world, const std::function<void(Control &)> &body);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H
