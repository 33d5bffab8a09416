//===- Sequential.h - Training without a pipeline ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_SEQUENTIAL_H
#define CHIMERA_RUNTIME_TRAIN_SEQUENTIAL_H

#include "runtime/interpreter/Interpreter.h"

namespace chimera::runtime {

struct SequentialResult {
  std::vector<Loss> losses; ///< by step
  /// The parameters of the whole model, in stage order, tied ones once.
  std::vector<std::byte> weights;
  std::vector<std::byte> gradients; ///< of the last step, scaled; likewise
  /// For each of the program's stages the step in which its updates halted.
  std::vector<std::optional<uint64_t>> halted;
};

/// Trains what `program` describes on one device: each step takes the N·W
/// micro-batches in ascending order through forward and backward of all
/// `stages`, in the parts that the program's backwards cover, and then steps
/// each. `stages` are the program's, in order, or one
/// stage that is all of them, and holds tied parameters once; else the
/// gradients of both copies become their sum. Uses the program's sizes, none of
/// its streams. Calls `onStep` after each step, and ends early if that returns
/// false. With `keepFinite` updates halt (Stage::optimizerStep), and it ends
/// after a step in which one has. Evaluates as `evaluation` says, after the
/// last step when `onTrained` has had the result, unless that returns false.
/// Throws what the stages throw, and std::invalid_argument for any other number
/// of stages.
SequentialResult
trainSequentially(const program::ProgramT &program,
                  const std::vector<std::unique_ptr<Stage>> &stages,
                  DataSource &data, uint64_t steps,
                  const std::function<bool(uint64_t, Loss)> &onStep = {},
                  const Evaluation &evaluation = {},
                  const std::function<bool(SequentialResult &)> &onTrained = {},
                  bool keepFinite = false);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_SEQUENTIAL_H
