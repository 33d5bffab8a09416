//===- Turns.cpp - Who calls MPI when -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Turns.h"

#include <sched.h>

using namespace chimera::runtime::mpi;

namespace {
// MPI is one per process.
RankFirst library;
bool takesTurns = false;
} // namespace

void RankFirst::lock() {
  if (try_lock())
    return;
  ranksWaiting.fetch_add(1);
  // A guest mostly leaves in less time than it takes to fall asleep.
  bool got = false;
  for (int turn = 0; turn < 200 && !got; ++turn) {
    sched_yield();
    got = try_lock();
  }
  if (!got)
    mutex.lock();
  ranksWaiting.fetch_sub(1);
}

void chimera::runtime::mpi::takeTurns(bool wanted) { takesTurns = wanted; }

Turn chimera::runtime::mpi::enter() {
  return takesTurns ? Turn(library) : Turn();
}

bool chimera::runtime::mpi::tryToEnter(Turn &turn) {
  if (!takesTurns)
    return true;
  if (!library.tryLockAsGuest())
    return false;
  turn = Turn(library, std::adopt_lock);
  return true;
}
