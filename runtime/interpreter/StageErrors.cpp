//===- StageErrors.cpp - Errors that stages find on a device --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage on a GPU does not wait for it, so it cannot throw all errors
// (Stage::needsErrorFlag). The host reads the flags of the stages together with
// the loss of each step and of each pass of an evaluation.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// Gives each stage of this worker that needs one a flag.
void Interpreter::makeErrorFlags() {
  for (const auto &[key, stage] : stages)
    if (stage->needsErrorFlag())
      stage->setErrorFlag(errorFlags.add(key, allocate(kFlagBytes), *compute));
  errorFlags.reserveCopies(device, losses.size());
}

/// Called when `step` has ended on the device. Throws the error of a stage, if
/// there is one.
void Interpreter::expectNoErrors(const QueuedStep &step) const {
  for (const auto &[key, flag] : errorFlags.valuesIn(step.losses))
    if (flag != 0)
      throw std::runtime_error(
          (step.pass
               ? "evaluation after " + program::countWithNoun(step.step, "step")
               : "step " + std::to_string(step.step + 1)) +
          ", stage " + std::to_string(key.second) + ": " +
          stages.at(key)->errorMessage(flag));
}
