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
  /// The parameters of the whole model, in stage order, with tied ones once.
  std::vector<std::byte> weights;
  std::vector<std::byte> gradients; ///< of the last step, scaled
  /// For each of the program's stages: the step in which its updates halted.
  std::vector<std::optional<uint64_t>> halted;
};

/// Trains the model of `program` on one device. Each step takes the
/// micro-batches of all copies in ascending order, runs forward and backward of
/// all `stages`, and then updates each stage. If the backwards of the program
/// work on parts of a micro-batch, forward and backward work on the same parts.
///
/// `stages` are the program's stages in order, or one stage for the whole
/// model, which stores tied parameters once. With several stages, the gradients
/// of both copies of tied parameters are replaced by their sum. Only the
/// program's sizes are used, not its instruction streams.
///
/// Calls `onStep` after each step and stops if it returns false. With
/// `keepFinite`, updates halt (Stage::optimizerStep), and training stops after
/// the step in which they halt. Evaluates as `evaluation` says. After the last
/// step, calls `onTrained` with the result before the last evaluation. If
/// `onTrained` returns false, skips this evaluation.
///
/// Throws what the stages throw. Throws std::invalid_argument if `stages` has
/// neither one stage nor all stages of the program.
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
