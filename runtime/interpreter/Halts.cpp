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

using namespace chimera;
using namespace chimera::runtime;

/// Gives each replica of this worker a flag.
void Interpreter::makeHaltFlags() {
  for (const program::State &state : worker.states)
    haltFlags.add({state.pipeline(), state.stage()}, allocate(kFlagBytes),
                  *compute);
  haltFlags.reserveCopies(device, losses.size());
}

/// Called when `step` has ended on the device. Records the replicas whose
/// updates halted in this step.
void Interpreter::noteHalts(const QueuedStep &step) {
  const bool isFirst = haltedIn.empty();
  for (const auto &[key, flag] : haltFlags.valuesIn(step.losses))
    if (hasHalted(flag))
      haltedIn.emplace(key, step.step);
  if (isFirst && !haltedIn.empty() && options.onHalt)
    options.onHalt();
}
