//===- Problem.h - The scheduling problem -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input of the schedule library. The library is plain C++ on integer ids;
// it does not use MLIR. A client fills a Request, asks a scheme of the registry
// (a schedule by name, such as 1f1b) for a Plan (Plan.h), and builds a Problem
// from both. The client then verifies and simulates the plan's order for that
// problem. The scheme, the verifier and the simulator are independent of each
// other.
//
// The README of this folder defines stage, pipeline, worker, micro-batch and
// action. A tick is the unit of all times in this library, an integer;
// TimeUnit.h says how ticks are shown to users.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_PROBLEM_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_PROBLEM_H

#include "compiler/schedule/model/Action.h"
#include "compiler/schedule/model/Network.h"

#include <optional>
#include <span>

namespace chimera::schedule {

/// The point at which a worker starts its part of an all-reduce.
enum class AllReducePolicy : uint8_t {
  Lazy,     ///< after the worker's last action
  Eager,    ///< after the worker's last action that adds to the gradient
  EagerOpt, ///< like Eager if the worker is idle at some time between its last
            ///< action that adds to the gradient and its last action; otherwise
            ///< like Lazy
};

/// How a backward of a stage gets the activations of its forward.
enum class Recompute : uint8_t {
  None,  ///< the forward keeps the activations
  Early, ///< A recompute computes the activations again before the backward.
         ///< The recompute may run before the backward's gradient arrives. The
         ///< recompute may be left out if the backward directly follows its
         ///< forward.
  Fused, ///< A recompute computes the activations again before every backward,
         ///< after the backward's gradient has arrived.
};

/// When weights are updated.
enum class Updates : uint8_t {
  Flush,          ///< at the end of the step, after all backwards of the step
                  ///< (a flush)
  EachMicroBatch, ///< After each backward, without a flush (PipeDream). The
                  ///< forward of a stage reads the newest version on its
                  ///< worker.
  EachStep,       ///< Once a step, without a flush (PipeDream-2BW). Every
                  ///< forward of a step reads the version before the newest
                  ///< one.
};

/// True if micro-batches of two steps can be in flight at the same time.
constexpr bool stepsOverlap(Updates updates) {
  return updates != Updates::Flush;
}

/// The times of the actions on one stage, for one micro-batch. All are
/// positive, except that an update may take no time.
struct StageCost {
  int64_t forward = 1;
  int64_t backward = 1;
  int64_t inputGradient = 1;
  int64_t weightGradient = 1;
  int64_t recompute = 1;
  int64_t update = 0; ///< of the weights of one replica, at least 0
  /// The time by which a forward of this stage makes a backward longer that is
  /// paired with it. None: `forward`, so a pair saves no time.
  std::optional<int64_t> pairedForward = {};
  /// The time by which a weight gradient makes another one longer that is
  /// joined with it. None: `weightGradient`, so a joint weight gradient saves
  /// no time.
  std::optional<int64_t> joinedWeightGradient = {};

  int64_t timeOf(Kind kind) const {
    static constexpr int64_t StageCost::*times[] = {
#define ACTION_KIND(kind, name, letter, cost, ...) &StageCost::cost,
#include "compiler/schedule/model/ActionKinds.def"
    };
    return this->*times[static_cast<size_t>(kind)];
  }
  int64_t pairedForwardTime() const { return pairedForward.value_or(forward); }
  int64_t joinedWeightGradientTime() const {
    return joinedWeightGradient.value_or(weightGradient);
  }
  /// The time that an action of this kind adds to the next one if both are
  /// joined.
  int64_t joinedTimeOf(Kind kind) const {
    return kind == Kind::Forward ? pairedForwardTime()
                                 : joinedWeightGradientTime();
  }
};

/// The sizes of one stage in bytes. None is negative.
struct StageBytes {
  int64_t weights = 0;   ///< of one replica
  int64_t optimizer = 0; ///< optimizer state of one replica
  int64_t stash = 0;     ///< saved by a forward for its backward
  /// Saved by an input gradient for its weight gradient.
  int64_t weightStash = 0;
  /// The stage's output for one micro-batch, which the next stage reads. The
  /// gradient of the output has the same size.
  int64_t boundary = 0;
  /// The part of `weights` that is a copy of parameters and has no gradient.
  int64_t parameterCopy = 0;

  /// The size of the stage's gradient sum.
  int64_t gradient() const { return weights - parameterCopy; }
};

/// One full copy of the model, with a worker for each stage.
struct Pipeline {
  bool up = false; ///< the direction, for display only
  /// The worker of each stage. A worker may have several stages of a pipeline
  /// (virtual stages); values pass between stages of one worker without a
  /// message.
  std::vector<int32_t> workers;
  std::vector<int32_t> microBatches; ///< numbers of the micro-batches that it
                                     ///< trains on, ascending
  /// The number of micro-batches that each forward covers, in the order of
  /// `microBatches`. Empty: each forward covers one. The micro-batches of one
  /// forward have consecutive numbers.
  std::vector<int32_t> forwards = {};
  /// Number of equal parts into which the backward of a micro-batch is divided.
  /// 1: a backward covers a whole micro-batch.
  int32_t backwardParts = 1;

  bool operator==(const Pipeline &) const = default;
};

/// The largest `backwardParts` of the pipelines.
int32_t maxParts(const std::vector<Pipeline> &pipelines);

/// The work and the machine: workers, stages with costs and sizes, links,
/// all-reduces and memory caps. A workload does not say on which worker a stage
/// is, or in which order actions run.
struct Workload : Network {
  int32_t workers = 0;
  /// Number of data-parallel copies of all workers, at least 1. A gradient is
  /// summed over all replicas of all copies.
  int32_t width = 1;
  std::vector<StageCost> stages;
  /// One value for each stage. Empty: no stage is recomputed.
  std::vector<Recompute> recompute;
  /// The sizes of each stage. Empty: the sizes are unknown, and count as 0.
  std::vector<StageBytes> bytes;
  /// Bytes of the parameters that the first and the last stage share (tied
  /// embedding). These parameters are part of the `weights` of both stages. The
  /// gradients of both stages for them are summed in one all-reduce.
  int64_t tiedBytes = 0;
  /// Whether gradients are clipped by the norm of the gradients of all stages.
  /// If they are, no update begins before the all-reduces of all gradients have
  /// ended.
  bool clips = false;
  AllReducePolicy policy = AllReducePolicy::Lazy;
  /// The most bytes of one all-reduce, at least 8. Larger gradients are cut
  /// into buckets. 0: gradients are not cut.
  int64_t bucketBytes = 0;
  /// The most bytes that each worker may have at once. Empty: no caps.
  std::vector<int64_t> memoryCaps;

  /// The time of an action of this kind on `stage`, for one micro-batch.
  int64_t cost(Kind kind, int32_t stage) const {
    return stages[stage].timeOf(kind);
  }
  StageBytes bytesOf(int32_t stage) const {
    return bytes.empty() ? StageBytes() : bytes[stage];
  }
  Recompute recomputeOf(int32_t stage) const {
    return recompute.empty() ? Recompute::None : recompute[stage];
  }
  /// The class of the links between the workers of `group` (one or more):
  /// `node->links` if these workers are on one node in every copy, otherwise
  /// the base class. Worker w of copy d runs on device d · workers + w. If
  /// `allCopies`, as for an all-reduce, the result is `node->links` only if
  /// all copies of these workers together are on one node.
  const LinkClass &linksOf(std::span<const int32_t> group,
                           bool allCopies = false) const;
  /// The times of a message between two workers.
  const Link &linkBetween(int32_t worker, int32_t other) const {
    return linksOf(std::array{worker, other}).link;
  }
  /// The time of a message for one micro-batch between `stage` and `stage` + 1,
  /// which are on different workers. The gradient in the other direction takes
  /// the same time. `of` is one of the three times of their link.
  int64_t messageTime(const MessageTime &of, int32_t stage) const;
  /// The time of the message of `action`, which may cover several micro-batches
  /// or a part of one.
  int64_t messageTime(const MessageTime &of, int32_t stage,
                      const Action &action) const;
};

/// Which backwards are split into an input gradient and a weight gradient: all,
/// none, or the backwards of some micro-batches on some stages.
class Splits {
public:
  /// All backwards are split if `all`, otherwise none.
  Splits(bool all = false) : uniform(all) {}
  /// A table with an entry for each stage and each micro-batch of one step. At
  /// first no backward is split.
  Splits(int32_t stages, int32_t microBatches)
      : width(microBatches),
        cells(static_cast<size_t>(stages) * microBatches, false) {}

  /// Marks this backward as split. Requires that the second constructor was
  /// used.
  void setSplit(int32_t stage, int32_t microBatch) {
    cells[indexOf(stage, microBatch)] = true;
  }
  /// True if this backward is split. Later steps have the same splits as the
  /// first.
  bool isSplit(int32_t stage, int32_t microBatch) const {
    return cells.empty() ? uniform : cells[indexOf(stage, microBatch)];
  }
  /// True if some backward is split.
  bool any() const;
  /// True if some backward is whole.
  bool anyWhole() const;
  /// These splits, without a table if all backwards or none are split.
  Splits simplified() const;

  bool operator==(const Splits &) const = default;

private:
  size_t indexOf(int32_t stage, int32_t microBatch) const {
    return static_cast<size_t>(stage) * width + microBatch % width;
  }

  bool uniform = false;
  int32_t width = 0;
  /// By stage and micro-batch. Empty: `uniform` applies to all.
  std::vector<bool> cells;
};

/// One training step: the workload, and all decisions of a plan except the
/// order of actions. Micro-batches are numbered 0 to N-1 over all pipelines. If
/// no flush ends a step (`updates`), consecutive steps overlap. Then the
/// problem is a run of `steps` steps, in which micro-batch m of step k has the
/// number k N + m.
struct Problem : Workload {
  std::vector<Pipeline> pipelines;
  Splits splits;
  Updates updates = Updates::Flush;
  int32_t steps = 1; ///< 1 with a flush, otherwise at least 2

  using Workload::cost;
  /// The time of an action. A forward over n micro-batches takes n times as
  /// long as over one; a part of a backward takes its part of the whole time
  /// (sizeOfPart). The time of joined actions is the sum of these times.
  int64_t cost(const Action &action) const;
  /// The number of micro-batches of one step.
  int32_t microBatches() const;
};

/// The size of part number `part` if `whole` is divided into `parts` integers
/// as equal as possible. The sizes sum to `whole`.
inline int64_t sizeOfPart(int64_t whole, int32_t part, int32_t parts) {
  int64_t each = whole / parts, rest = whole % parts;
  if (rest == 0)
    return each;
  return each + rest * (part + 1) / parts - rest * part / parts;
}

inline int64_t Problem::cost(const Action &action) const {
  int64_t each = action.joinedWithNext
                     ? stages[action.stage].joinedTimeOf(action.kind)
                     : cost(action.kind, action.stage);
  int64_t whole = each * action.microBatches;
  return action.parts == 1 ? whole
                           : sizeOfPart(whole, action.part, action.parts);
}

/// The first error of `problem`, or an empty string if the problem is well
/// formed. It is an error if
///
/// - there are no workers or no copies,
/// - a cost is below 1, or below the number of parts into which it is divided,
/// - the time of an update or message, or a size, is negative,
/// - `tiedBytes` is more than the gradient of the first or the last stage,
/// - buckets are smaller than 8 bytes,
/// - the sum of all times or of all bytes is 2^62 or more,
/// - a placement does not name a worker in [0, workers) for every stage,
/// - a pipeline has no micro-batches, or a micro-batch is not in exactly one
///   pipeline,
/// - forwards do not cover a pipeline's micro-batches in ranges of consecutive
///   numbers,
/// - bytes or recomputation are given for some stages and not for all, or
///   memory caps for some workers and not for all,
/// - `steps` does not fit `updates`, or
/// - steps overlap, and a step has too few micro-batches, there are several
///   pipelines, a worker has no stage, or an action covers more or less than
///   one micro-batch.
std::string check(const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_PROBLEM_H
