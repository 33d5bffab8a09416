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
  std::vector<Loss> losses; ///< by step, from the first step on
  /// The parameters of the whole model, in stage order, with tied ones once.
  std::vector<std::byte> weights;
  std::vector<std::byte> gradients; ///< of the last step, scaled
  /// For each of the program's stages: the step in which its updates halted.
  std::vector<std::optional<uint64_t>> halted;
};

/// The options of trainSequentially.
struct SequentialOptions {
  uint64_t firstStep = 0;   ///< number of steps before the first one
  uint64_t firstUpdate = 0; ///< number of updates of each weight before it
  /// Called after each step. Training stops if it returns false.
  std::function<bool(uint64_t, Loss)> onStep = {};
  Evaluation evaluation = {};
  bool evaluatesStart = false; ///< whether to evaluate before the first step
  /// Called after the last step with the result before the last evaluation,
  /// which is skipped if it returns false.
  std::function<bool(SequentialResult &)> onTrained = {};
  /// If true, updates halt (Stage::optimizerStep), and training stops after the
  /// step in which they halt.
  bool keepFinite = false;
  /// See Interpreter::Options.
  uint64_t skipNonFinite = 0;
  /// If `onCheckpoint` is set: called after every `checkpointEvery` steps (0:
  /// never), after each step for which `isCheckpointWanted` returns true, and
  /// after the last one, with the number of steps, whether updates have halted,
  /// and the weights and the optimizer state of each stage. Without a flush,
  /// the stages then all use their newest weights.
  uint64_t checkpointEvery = 0;
  std::function<bool()> isCheckpointWanted = {};
  /// Whether to call onCheckpoint if there is no step, with the initial state.
  bool savesStart = false;
  using States = std::vector<std::pair<ConstBytes, ConstBytes>>;
  std::function<void(uint64_t, bool, const States &)> onCheckpoint = {};
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
/// Runs steps [options.firstStep, steps).
///
/// Throws what the stages throw. Throws std::invalid_argument if `stages` has
/// neither one stage nor all stages of the program.
SequentialResult
trainSequentially(const program::ProgramT &program,
                  const std::vector<std::unique_ptr<Stage>> &stages,
                  DataSource &data, uint64_t steps,
                  const SequentialOptions &options = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_SEQUENTIAL_H
