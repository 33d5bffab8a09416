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
#include <vector>

namespace chimera::runtime::test {

/// The numbers of ranks to test with: several in one process, or the one of the
/// MPI job that this process is part of.
std::vector<uint32_t> worldSizes();

/// Runs `body` once for each of `ranks` ranks, with a control of its own: on
/// threads, or in an MPI job once, for this process's rank.
void onEachRank(uint32_t ranks, const std::function<void(Control &)> &body);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CONTROL_WORLD_H
