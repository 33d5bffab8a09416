//===- OrderText.h - An order of actions as text ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each worker runs, as a line of words:
//
//   F0 F1 B0 B1            forwards and whole backwards of micro-batches
//   F0 I0 F1 W0            input gradients and weight gradients
//   F0 R0 B0               a recompute
//   2F0 2B0                on stage 2, where the worker has several stages of
//                          the micro-batch's pipeline
//   F0-1                   one forward of two micro-batches
//   B0.0 B0.1              a backward in two parts
//   F0 . F1 .3 B0          idle slots: one, and three (.0: none); all actions
//                          then take one slot
//   F0 F1 | F2 B0 | B1 B2  prologue, step and epilogue where steps overlap; the
//                          epilogue numbers micro-batches from 0, the others
//                          those of the next step from N
//
// A micro-batch has one pipeline, so no word names one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_ORDERTEXT_H
#define CHIMERA_COMPILER_SCHEDULE_ORDERTEXT_H

#include "compiler/schedule/Schedule.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chimera::schedule {

/// What is wrong with a line, and at which of its characters.
struct TextError {
  size_t at;
  std::string message;
};

/// What a worker's line says.
struct OrderLine {
  std::vector<Action> actions;
  std::vector<uint32_t> places; ///< of each action's word in the line
  std::vector<int64_t> slots;   ///< of each action
  bool saysSlots = false;       ///< else the slots mean nothing
  std::optional<Schedule::Body> body;
};

/// Reads and writes the lines of one problem's workers.
class OrderText {
public:
  /// Requires placements on `workers` and that each of the micro-batches
  /// 0..N-1 is in one pipeline.
  OrderText(int32_t workers, const std::vector<Pipeline> &pipelines,
            Updates updates);

  /// Reads the line of `worker` into `line`. None if that worked, else the
  /// first word that is none, or that names what this worker does not have: a
  /// stage, a micro-batch, a range of a forward or a part of a backward.
  /// Whether the actions are those of the problem and in a possible order is
  /// verify's to say.
  std::optional<TextError> read(int32_t worker, std::string_view text,
                                OrderLine &line) const;

  /// The line that `read` reads as what `worker` runs.
  std::string write(const Schedule &schedule, int32_t worker) const;

private:
  friend class LineReader;

  /// The pipeline of a micro-batch, and the forward that begins with it.
  struct Cover {
    int32_t pipeline = -1;
    int32_t count = 0; ///< micro-batches of that forward, 0 where none begins
  };
  using Replica = std::pair<int32_t, int32_t>; ///< pipeline and stage

  /// The replicas of `pipeline` that `worker` has.
  std::span<const Replica> heldBy(int32_t worker, int32_t pipeline) const;

  const std::vector<Pipeline> &pipelines;
  bool overlaps;
  std::vector<Cover> covers;               ///< by micro-batch
  std::vector<std::vector<Replica>> holds; ///< by worker, ascending
};

/// Which backwards of `schedule`, of `stages` and a step's `microBatches`, are
/// split: those of which it has an input gradient or a weight gradient.
Splits splitsOf(const Schedule &schedule, int32_t stages, int32_t microBatches);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_ORDERTEXT_H
