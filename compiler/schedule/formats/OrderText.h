//===- OrderText.h - Orders of actions as text ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of a worker as a line of words:
//
//    F0 F1 B0 B1            forwards and whole backwards of micro-batches
//    F0 I0 F1 W0            input gradients and weight gradients
//    F0 R0 B0               a recompute
//    2F0 2B0                on stage 2; needed if the worker has several
//                           stages of the micro-batch's pipeline
//    F0-1                   one forward of two micro-batches
//    B0.0 B0.1              a backward in two parts
//    F7+B3                  a pair: a forward and a backward (or input
//                           gradient) that run as one action
//    W0+W1+W2               a joint weight gradient: weight gradients of one
//                           stage that run as one action
//    F0 . F1 .3 B0          idle slots: one, then three (.0 for none); each
//                           action takes one slot
//    F0 F1 | F2 B0 | B1 B2  prologue, body and epilogue if steps overlap; in
//                           prologue and body the second step's micro-batches
//                           have numbers from N on, in the epilogue from 0 on
//
// A micro-batch belongs to one pipeline, so no word names a pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_ORDERTEXT_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_ORDERTEXT_H

#include "compiler/schedule/model/Schedule.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chimera::schedule {

/// An error in a line, and the index of the character where it is.
struct TextError {
  size_t offset;
  std::string message;
};

/// The contents of a worker's line.
struct OrderLine {
  std::vector<Action> actions;
  /// The index in the line at which the word of each action begins.
  std::vector<uint32_t> wordStarts;
  std::vector<int64_t> slots; ///< of each action
  bool hasSlots = false;      ///< if false, `slots` has no meaning
  std::optional<Schedule::Body> body;
};

/// Reads and writes the lines of all workers of a problem.
class OrderText {
public:
  /// Keeps a reference to `pipelines`. Requires that all placements use only
  /// workers below `workers`, and that each of the micro-batches 0 to N-1 is in
  /// one pipeline.
  OrderText(int32_t workers, const std::vector<Pipeline> &pipelines,
            Updates updates);

  /// Reads the line of `worker` into `line`. Returns the first error, if any.
  /// It is an error if a word is malformed, or names a stage, micro-batch,
  /// range of a forward or part of a backward that this worker does not have.
  /// `verify` checks whether the actions are complete and their order is valid.
  std::optional<TextError> read(int32_t worker, std::string_view text,
                                OrderLine &line) const;

  /// The order of `worker` as a line that `read` can read. Each word names its
  /// stage if `namesAllStages` or if the worker has several.
  std::string write(const Schedule &schedule, int32_t worker,
                    bool namesAllStages = false) const;

private:
  friend class LineReader;

  /// The pipeline of a micro-batch, and the number of micro-batches of the
  /// forward that begins with it.
  struct Cover {
    int32_t pipeline = -1;
    int32_t count = 0; ///< 0 if no forward begins with this micro-batch
  };
  using Replica = std::pair<int32_t, int32_t>; ///< pipeline and stage

  /// The replicas of `pipeline` on `worker`.
  std::span<const Replica> replicasOn(int32_t worker, int32_t pipeline) const;

  const std::vector<Pipeline> &pipelines;
  bool overlaps;
  std::vector<Cover> covers;                  ///< by micro-batch
  std::vector<std::vector<Replica>> replicas; ///< by worker, ascending
};

/// The split backwards of `schedule`: the backwards for which it has an input
/// gradient or a weight gradient. `stages` and `microBatches` are the numbers
/// of stages and of micro-batches in a step.
Splits splitsOf(const Schedule &schedule, int32_t stages, int32_t microBatches);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_ORDERTEXT_H
