//===- Halts.cpp - Updates that keep weights finite -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The option keepFinite: updates halt if a gradient sum is not finite. Each
// replica has a flag in the memory of the device. An update sets the flag if
// its gradient sum is not finite, and changes nothing if the flag is set. If
// the program clips, some updates may first be left out
// (Options::skipNonFinite). The host reads the flag together with the loss of
// the step. All replicas of a stage use the same gradient sums, so they halt at
// the same update without communication. Other stages may do a few more updates
// before the run stops.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include <cstring>

using namespace chimera;
using namespace chimera::runtime;

/// Creates the flags of this worker's replicas. They are not set initially.
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

/// Enqueues a copy of the flags to host memory. noteHalts reads this copy when
/// the step has ended.
void Interpreter::readFlags() {
  if (flags.empty())
    return;
  std::byte *host = flagsRead[nextLoss % flagsRead.size()].get();
  for (const auto &[key, flag] : flags) {
    compute->readBack({flag.get(), kFlagBytes}, {host, kFlagBytes});
    host += kFlagBytes;
  }
}

/// Called when `step` has ended on the device. Records the replicas whose
/// updates halted in this step.
void Interpreter::noteHalts(const QueuedStep &step) {
  if (flags.empty())
    return;
  const bool isFirst = haltedIn.empty();
  const std::byte *host = flagsRead[step.losses % flagsRead.size()].get();
  for (const auto &[key, flag] : flags) {
    int32_t value = 0;
    std::memcpy(&value, host, sizeof value);
    host += kFlagBytes;
    if (hasHalted(value))
      haltedIn.emplace(key, step.step);
  }
  if (isFirst && !haltedIn.empty() && options.onHalt)
    options.onHalt();
}
