//===- CallLock.cpp - When a thread may call MPI --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/CallLock.h"

#include <sched.h>

using namespace chimera::runtime;
using namespace chimera::runtime::mpi;

namespace {
// Global variables, because MPI is initialised once per process.
PriorityMutex library;
bool serializesCalls = false;
CallMark ofRank, ofGuest;
} // namespace

void PriorityMutex::lock() {
  if (try_lock())
    return;
  ranksWaiting.fetch_add(1);
  // Poll first: a guest usually releases the mutex sooner than this thread
  // could fall asleep.
  bool got = false;
  for (int turn = 0; turn < 200 && !got; ++turn) {
    sched_yield();
    got = try_lock();
  }
  if (!got)
    mutex.lock();
  ranksWaiting.fetch_sub(1);
}

void chimera::runtime::mpi::serializeCalls(bool wanted) {
  serializesCalls = wanted;
}

MarkedCall chimera::runtime::mpi::enter(const char *call) {
  return {serializesCalls ? PriorityLock(library) : PriorityLock(), ofRank,
          call};
}

std::optional<MarkedCall> chimera::runtime::mpi::tryToEnter(const char *call) {
  if (!serializesCalls)
    return MarkedCall({}, ofGuest, call);
  if (!library.tryLockLowPriority())
    return std::nullopt;
  return MarkedCall(PriorityLock(library, std::adopt_lock), ofGuest, call);
}

std::vector<CallMark::Call> chimera::runtime::mpi::callsInFlight() {
  return {ofRank.read(), ofGuest.read()};
}
