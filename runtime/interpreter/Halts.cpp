//===- Halts.cpp - Updates that keep weights finite -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each replica has a flag in the memory of the device. Its updates set the flag
// and check it. The host reads it together with the loss of the step. Replicas
// of a stage use the same gradient sums, so they halt at the same update
// without communication. Other stages may be a few updates ahead when the run
// stops.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include <cstring>

using namespace chimera;
using namespace chimera::runtime;

/// Creates the flags of this worker's replicas, initially not set.
void Interpreter::makeFlags() {
  for (const program::State &state : worker.states) {
    Block &flag = flags[{state.pipeline(), state.stage()}] =
        allocate(kFlagBytes);
    compute->zero({flag.get(), kFlagBytes});
  }
  for (size_t i = 0; i < losses.size(); ++i)
    flagsRead.push_back(device.allocateHost(flags.size() * kFlagBytes));
}

/// The flag of a replica. Empty if the weights need not stay finite.
Bytes Interpreter::flagOf(const Key &key) const {
  const auto flag = flags.find(key);
  return flag == flags.end() ? Bytes() : Bytes(flag->second.get(), kFlagBytes);
}

/// Queues a copy of the flags to the host, which the host reads together with
/// the loss.
void Interpreter::readFlags() {
  if (flags.empty())
    return;
  std::byte *host = flagsRead[nextLoss % flagsRead.size()].get();
  for (const auto &[key, flag] : flags) {
    compute->readBack({flag.get(), kFlagBytes}, {host, kFlagBytes});
    host += kFlagBytes;
  }
}

/// If updates halted in a step that has ended, records their replicas.
void Interpreter::noteHalts(const QueuedStep &step) {
  if (flags.empty())
    return;
  const bool isFirst = haltedIn.empty();
  const std::byte *host = flagsRead[step.losses % flagsRead.size()].get();
  for (const auto &[key, flag] : flags) {
    int32_t isSet = 0;
    std::memcpy(&isSet, host, sizeof isSet);
    host += kFlagBytes;
    if (isSet)
      haltedIn.emplace(key, step.step);
  }
  if (isFirst && !haltedIn.empty() && options.onHalt)
    options.onHalt();
}
