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

#include <cstring>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

/// Gives each stage of this worker that needs one a flag.
void Interpreter::makeErrorFlags() {
  for (const auto &[key, stage] : stages) {
    if (!stage->needsErrorFlag())
      continue;
    Block &flag = errorFlags[key] = allocate(kFlagBytes);
    compute->zero({flag.get(), kFlagBytes});
    stage->setErrorFlag({flag.get(), kFlagBytes});
  }
  for (size_t i = 0; i < losses.size() && !errorFlags.empty(); ++i)
    errorFlagsRead.push_back(
        device.allocateHost(errorFlags.size() * kFlagBytes));
}

/// Enqueues a copy of the flags to host memory. expectNoErrors reads this copy
/// when the step has ended.
void Interpreter::readErrorFlags() {
  if (errorFlags.empty())
    return;
  std::byte *host = errorFlagsRead[nextLoss % errorFlagsRead.size()].get();
  for (const auto &[key, flag] : errorFlags) {
    compute->readBack({flag.get(), kFlagBytes}, {host, kFlagBytes});
    host += kFlagBytes;
  }
}

/// Called when `step` has ended on the device. Throws the error of a stage, if
/// there is one.
void Interpreter::expectNoErrors(const QueuedStep &step) const {
  if (errorFlags.empty())
    return;
  const std::byte *host =
      errorFlagsRead[step.losses % errorFlagsRead.size()].get();
  for (const auto &[key, flag] : errorFlags) {
    int32_t value = 0;
    std::memcpy(&value, host, sizeof value);
    host += kFlagBytes;
    if (value != 0)
      throw std::runtime_error(
          (step.pass
               ? "evaluation after " + program::countWithNoun(step.step, "step")
               : "step " + std::to_string(step.step + 1)) +
          ", stage " + std::to_string(key.second) + ": " +
          stages.at(key)->errorMessage(value));
  }
}
