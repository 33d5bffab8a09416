//===- Action.h - A computation on one stage --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_ACTION_H
#define CHIMERA_COMPILER_SCHEDULE_ACTION_H

#include <cstdint>
#include <string>

namespace chimera::schedule {

/// The kind of an action. A backward is either one whole action, or it is split
/// into an input gradient and a weight gradient. A recompute runs a forward
/// again before its backward, so that the forward need not keep its
/// activations.
enum class Kind : uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute
};

/// True if an action of this kind adds to the gradient of its stage's weights.
constexpr bool addsToGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::WeightGradient;
}

/// A computation of one kind on one stage of a pipeline.
struct Action {
  Kind kind;
  int32_t pipeline;
  int32_t stage;
  int32_t microBatch;
  /// The number of micro-batches that a forward covers, from `microBatch` on.
  /// Any other action covers part number `part` of `parts` equal parts of one
  /// micro-batch.
  uint16_t microBatches = 1;
  uint8_t part = 0;
  uint8_t parts = 1;

  bool operator==(const Action &) const = default;
};

/// "forward", "backward", "input_gradient", "weight_gradient", "recompute".
const char *nameOf(Kind kind);

/// "pipeline 0, stage 1, micro-batch 2". Ends with "micro-batches 2 to 3" for a
/// forward over two micro-batches, and with "micro-batch 2, part 0 of 2" for a
/// part. If `namesPipeline` is false, "pipeline 0, " is left out.
std::string labelOf(const Action &action, bool namesPipeline = true);

/// "forward of " and the label.
std::string describe(const Action &action, bool namesPipeline = true);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_ACTION_H
