//===- World.h - Ranks for a test -------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H
#define CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H

#include "runtime/channel/Channels.h"

#include <functional>

namespace chimera::runtime::test {

/// The numbers of ranks to test with: several in one process, or the one of the
/// MPI job that this process is part of.
std::vector<uint32_t> worldSizes();

/// Whether what every rank has started completes when one of them waits, the
/// others being busy. In an MPI job it takes progress threads, which
/// CHIMERA_TEST_PROGRESS in the environment asks for: if it is `in turn`, with
/// an MPI that wants to be called by one thread at a time.
bool oneRankSuffices();

/// Runs `body` once for each of `ranks` ranks, with a channels of its own: on
/// threads, or in an MPI job once, for this process's rank.
void onEachRank(uint32_t ranks, const std::function<void(Channels &)> &body);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CHANNEL_WORLD_H
