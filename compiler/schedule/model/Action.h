//===- Action.h - A computation on one stage --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_ACTION_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_ACTION_H

#include <cstdint>
#include <optional>
#include <string>

namespace chimera::schedule {

/// The kind of an action. A backward is either one whole action, or it is split
/// into an input gradient and a weight gradient. A recompute runs a forward
/// again before its backward, so that the forward need not keep its
/// activations.
enum class Kind : uint8_t {
#define ACTION_KIND(kind, ...) kind,
#include "compiler/schedule/model/ActionKinds.def"
};

/// The kind of value that leaves a stage after an action.
enum class StageResult : uint8_t {
  Nothing,
  Activation, ///< goes to the next stage
  Gradient,   ///< goes to the previous stage
};

/// A row of ActionKinds.def, without the colours.
struct KindRow {
  Kind kind;
  const char *name;
  char letter;
  StageResult result;
  bool addsToGradient;
};

/// All kinds, in their order.
inline constexpr KindRow kActionKinds[] = {
#define ACTION_KIND(kind, name, letter, cost, result, gradient, dark, pale)    \
  {Kind::kind, name, letter, StageResult::result, gradient},
#include "compiler/schedule/model/ActionKinds.def"
};

constexpr const KindRow &rowOf(Kind kind) {
  return kActionKinds[static_cast<size_t>(kind)];
}

/// The kind with this letter, if any.
constexpr std::optional<Kind> kindOf(char letter) {
  for (const KindRow &row : kActionKinds)
    if (row.letter == letter)
      return row.kind;
  return std::nullopt;
}

/// True if an action of this kind adds to the gradient of its stage's weights.
constexpr bool addsToGradient(Kind kind) { return rowOf(kind).addsToGradient; }

/// True for a backward and for an input gradient: both need the gradient of the
/// stage's output, and both make the gradient of its input.
constexpr bool makesGradient(Kind kind) {
  return rowOf(kind).result == StageResult::Gradient;
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
  /// Whether a worker runs this action and the next one of its order as one.
  /// A *pair* is a forward and then a backward or an input gradient. It begins
  /// when both can begin, and the messages of both leave when both have ended.
  /// (PyTorch: OVERLAP_F_B.) A *joint weight gradient* is two or more weight
  /// gradients of one stage.
  bool joinedWithNext = false;

  bool operator==(const Action &) const = default;
};

/// "forward", "backward", "input_gradient", "weight_gradient", "recompute".
constexpr const char *nameOf(Kind kind) { return rowOf(kind).name; }

/// The name with blanks: "input gradient".
std::string wordsOf(Kind kind);

/// "pipeline 0, stage 1, micro-batch 2". Ends with "micro-batches 2 to 3" for a
/// forward over two micro-batches, and with "micro-batch 2, part 0 of 2" for a
/// part. If `namesPipeline` is false, "pipeline 0, " is left out.
std::string labelOf(const Action &action, bool namesPipeline = true);

/// "forward of " and the label.
std::string describe(const Action &action, bool namesPipeline = true);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_ACTION_H
