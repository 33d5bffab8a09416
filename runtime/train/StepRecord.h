//===- StepRecord.h - The recorded numbers of a step ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STEPRECORD_H
#define CHIMERA_RUNTIME_TRAIN_STEPRECORD_H

#include "runtime/train/TrainingRun.h"

#include <nlohmann/json_fwd.hpp>
#include <span>

namespace chimera::runtime {

/// The figures that a run logs after a step.
struct StepRecord {
  StepEvent event;
  /// The rates since the end of the step before. The time of an evaluation or
  /// of a checkpoint between the two steps counts. A rate is empty if the
  /// program has no tokens, or no samples.
  std::optional<double> tokensPerSecond, samplesPerSecond;
};

/// A number in the record of a step. To record another number, add it to
/// StepEvent and add a row to the table in StepRecord.cpp.
struct StepField {
  const char *name; ///< in the log
  const char *tag;  ///< in TensorBoard
  /// The number. Null if the step has none: the field is then left out.
  nlohmann::ordered_json (*valueOf)(const StepRecord &);
};

/// All fields, in the order of the log.
std::span<const StepField> stepFields();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STEPRECORD_H
