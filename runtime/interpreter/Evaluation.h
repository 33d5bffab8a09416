//===- Evaluation.h - Evaluation on held-out data ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_EVALUATION_H
#define CHIMERA_RUNTIME_INTERPRETER_EVALUATION_H

#include "runtime/data/DataSource.h"
#include "runtime/model/Stage.h"

#include <functional>
#include <optional>

namespace chimera::runtime {

struct EvaluationResult {
  double loss; ///< the mean
  /// The share of labels that the model predicts right, from 0 to 1. None if
  /// the model has no accuracy, or if no label counts.
  std::optional<double> accuracy = {};
};

/// The evaluation of a model: its loss on held-out data, and its accuracy if it
/// has one (Predictions.h). It consists of `passes` passes. A pass covers as
/// many micro-batches as a step. The pass number is given to `data` as the step
/// number. In a pass, all ranks run only the forwards of a step and the
/// instructions that the forwards need, in the order of the step. So the proof
/// that the program has no deadlock and no race is also valid for a pass.
///
/// For the accuracy, all passes run a second time. Then the last stage writes
/// numbers of right predictions in place of losses, and the all-reduce of
/// losses sums them.
struct Evaluation {
  DataSource *data = nullptr; ///< null: no evaluation
  uint64_t passes = 0;
  uint64_t every = 0; ///< steps between evaluations; 0: only by `evaluate`
  bool hasAccuracy = false;
  /// Called on ranks that have the loss. The first argument is the number of
  /// steps before the evaluation.
  std::function<void(uint64_t, const EvaluationResult &)> onResult = {};

  /// Whether the weights after `steps` steps are evaluated, if the run goes on.
  bool isDueAfter(uint64_t steps) const {
    return data && every > 0 && steps % every == 0;
  }
  uint64_t allPasses() const { return hasAccuracy ? 2 * passes : passes; }
  ForwardMode modeOf(uint64_t pass) const {
    return pass < passes ? ForwardMode::Evaluation : ForwardMode::Accuracy;
  }
};

/// The number of labels in `passes` passes over `data` that count. Requires a
/// model with predictedField.
uint64_t countLabels(const program::ProgramT &program, DataSource &data,
                     uint64_t passes);

/// The result of an evaluation. `losses` is the sum of all losses, and `right`
/// the number of right predictions.
EvaluationResult resultOf(const program::ProgramT &program,
                          const Evaluation &evaluation, double losses,
                          double right);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_EVALUATION_H
