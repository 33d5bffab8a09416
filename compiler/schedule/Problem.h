//===- Problem.h - What is to be scheduled ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schedule library: plain C++ on integer ids, no MLIR. A client fills a
// Request, has a scheme of the registry make a Plan of it (Plan.h), and
// verifies and simulates the plan's order as a solution of the Problem that
// both state; none of these steps knows the others.
//
// Words: stage, pipeline, worker, micro-batch and action as in the design; a
// tick is what costs count, whatever a client takes it for (TimeUnit.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_PROBLEM_H
#define CHIMERA_COMPILER_SCHEDULE_PROBLEM_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::schedule {

/// What an action does on one stage. A backward is either whole or split into
/// its input gradient and its weight gradient. A recompute runs a forward again
/// to make what its backward needs, so that the forward need not keep it.
enum class Kind : uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute
};

/// When a worker starts its part in an all-reduce.
enum class AllReducePolicy : uint8_t {
  Lazy,     ///< behind its last action
  Eager,    ///< behind the last action that contributes
  EagerOpt, ///< there where it is idle for some time between that and its last
            ///< action, else lazy
};

/// How a gradient is summed over r replicas.
enum class AllReduceAlgorithm : uint8_t {
  Rabenseifner, ///< halves, then doubles: 2 log2(r) messages, 2 (r-1)/r of the
                ///< bytes
  Doubling,     ///< exchanges all bytes log2(r) times
};

/// True for what adds to the gradient of a stage's weights.
constexpr bool addsToGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::WeightGradient;
}

/// How the activations of a stage come to its backward.
enum class Recompute : uint8_t {
  None,  ///< the forward keeps them
  Early, ///< made again before the backward, at once if the worker is free; a
         ///< backward straight behind its forward needs none
  Fused, ///< made again before every backward, once its gradient is there
};

/// When weights change.
enum class Updates : uint8_t {
  Flush,          ///< at the end of the step, which waits for all its backwards
  EachMicroBatch, ///< after each backward, no flush (PipeDream): the forward
                  ///< of a stage reads the newest version on its worker
  EachStep,       ///< once a step, no flush (PipeDream-2BW): every forward of a
                  ///< step reads the version before the newest one
};

/// True if micro-batches of two steps are in flight at a time.
constexpr bool stepsOverlap(Updates updates) {
  return updates != Updates::Flush;
}

struct Action;

/// Time of each action on one stage, all positive, and of an update.
struct StageCost {
  int64_t forward = 1;
  int64_t backward = 1;
  int64_t inputGradient = 1;
  int64_t weightGradient = 1;
  int64_t recompute = 1;
  int64_t update = 0; ///< of the weights of one replica, at least 0

  int64_t of(Kind kind) const {
    static constexpr int64_t StageCost::*times[] = {
        &StageCost::forward, &StageCost::backward, &StageCost::inputGradient,
        &StageCost::weightGradient, &StageCost::recompute};
    return this->*times[static_cast<size_t>(kind)];
  }
};

/// Bytes of one stage; none negative.
struct StageBytes {
  int64_t weights = 0;   ///< of one replica
  int64_t optimizer = 0; ///< optimizer state of one replica
  int64_t stash = 0;     ///< what a forward keeps for its backward
  /// What an input gradient keeps for its weight gradient.
  int64_t weightStash = 0;
  /// What the stage gives to the next for one micro-batch, and what comes back
  /// for it as a gradient.
  int64_t boundary = 0;
  /// Of the weights, what is a copy of the parameters and has no gradient.
  int64_t copy = 0;

  /// Of a sum of gradients.
  int64_t gradient() const { return weights - copy; }
};

/// A time for a message of b bytes: alpha + b · beta / betaBytes, rounded up.
struct MessageTime {
  int64_t alpha = 0;     ///< at least 0
  int64_t beta = 0;      ///< at least 0: time for each `betaBytes` bytes
  int64_t betaBytes = 1; ///< at least 1
};

/// The `betaBytes` of times that people state.
inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// What a message takes from one worker to another. Its worker is occupied by
/// it for the time of `send` behind the action that makes it; its own time,
/// after that, is on the way and occupies nobody; then the other is occupied
/// for the time of `receive` before the action that waits for it, however long
/// it has been there. Messages never wait for each other.
struct Link : MessageTime {
  MessageTime send = {}, receive = {};

  /// Its own, that of the send, that of the receive.
  std::array<MessageTime, 3> times() const { return {*this, send, receive}; }
};

/// What moving values takes over the links of one class.
struct LinkClass {
  Link link;
  /// What a message of an all-reduce takes; the link's time unless given.
  std::optional<MessageTime> allReduceMessage = {};
  /// What an all-reduce takes beside its messages, once for all of its bytes.
  MessageTime allReduceEnds = {};
};

/// Devices that are near each other: so many, in the order of their numbers.
struct Node {
  int32_t devices = 1;   ///< at least 1
  LinkClass within = {}; ///< its own links
  /// That compute for its devices, which share them equally; 0: each has one of
  /// its own (SharedCores.h).
  int32_t cores = 0;
};

/// What moving values between workers takes: what the base says, and on a node
/// what the node says.
struct Network : LinkClass {
  AllReduceAlgorithm allReduceAlgorithm = AllReduceAlgorithm::Rabenseifner;
  /// Whether an all-reduce goes on only while its workers wait for it, so that
  /// none hides behind computation or updates.
  bool blockingAllReduces = false;
  std::optional<Node> node; ///< none: all links are alike

  /// Both classes, or the one that there is.
  std::vector<const LinkClass *> classes() const;
  std::vector<LinkClass *> classes();
  /// True if some message takes time on its way.
  bool hasFlights() const;
};

/// One full copy of the model laid over the workers.
struct Pipeline {
  bool up = false; ///< direction, for pictures
  /// Stage -> worker. A worker may hold several stages of a pipeline (virtual
  /// stages); what passes between those is no message.
  std::vector<int32_t> workers;
  std::vector<int32_t> microBatches; ///< those it trains on, ascending
  /// Empty (one each), or how many micro-batches each forward covers in the
  /// order of `microBatches`; those of one forward are consecutive numbers.
  std::vector<int32_t> forwards = {};
  /// A backward covers one micro-batch, or one of this many equal parts of it.
  int32_t backwardParts = 1;

  bool operator==(const Pipeline &) const = default;
};

/// The most parts that a backward of any of them is cut into.
int32_t mostParts(const std::vector<Pipeline> &pipelines);

/// What is to run and on what, whoever decides where and in which order.
struct Workload : Network {
  int32_t workers = 0;
  /// Data-parallel copies of all workers, at least 1. A gradient is summed over
  /// all replicas of all copies.
  int32_t width = 1;
  std::vector<StageCost> stages;
  /// Empty (none), or one for each stage.
  std::vector<Recompute> recompute;
  /// Empty (all zero), or one for each stage.
  std::vector<StageBytes> bytes;
  /// Of the weights of the first and of the last stage, those of parameters
  /// that both hold (a tied embedding), whose gradients are reduced as one.
  int64_t tiedBytes = 0;
  AllReducePolicy policy = AllReducePolicy::Lazy;
  /// 0 (gradients are reduced whole), or the most bytes that are reduced at
  /// once, at least 8.
  int64_t bucketBytes = 0;
  /// Empty (no caps), or the most bytes that each worker may hold.
  std::vector<int64_t> memoryCaps;

  /// Of one micro-batch on `stage`.
  int64_t cost(Kind kind, int32_t stage) const {
    return stages[stage].of(kind);
  }
  StageBytes bytesOf(int32_t stage) const {
    return bytes.empty() ? StageBytes() : bytes[stage];
  }
  Recompute recomputeOf(int32_t stage) const {
    return recompute.empty() ? Recompute::None : recompute[stage];
  }
  /// The links that join `group`, one or more workers, in each of the copies:
  /// those of a node where that has all of them. Worker w of copy d runs on the
  /// device of number d · workers + w. With `allCopies` the group has its
  /// workers of all copies, as that of an all-reduce does.
  const LinkClass &linksOf(std::span<const int32_t> group,
                           bool allCopies = false) const;
  /// What a message between two workers takes.
  const Link &linkBetween(int32_t worker, int32_t other) const {
    return linksOf(std::array{worker, other}).link;
  }
  /// The time of a message between `stage` and stage + 1, on another worker,
  /// for one micro-batch; the gradient takes as long the other way. `of` is the
  /// link of both workers, or one of its ends.
  int64_t transfer(const MessageTime &of, int32_t stage) const;
  /// The same for what `action` covers.
  int64_t transfer(const MessageTime &of, int32_t stage,
                   const Action &action) const;
};

/// Which backwards are split into an input gradient and a weight gradient: all,
/// none, or those of some micro-batches on some stages.
class Splits {
public:
  /// None, or all.
  Splits(bool all = false) : uniform(all) {}
  /// None yet of a step's `microBatches` on each of `stages`.
  Splits(int32_t stages, int32_t microBatches)
      : width(microBatches),
        cells(static_cast<size_t>(stages) * microBatches, false) {}

  /// Requires that this was made for stages and micro-batches.
  void split(int32_t stage, int32_t microBatch) {
    cells[indexOf(stage, microBatch)] = true;
  }
  /// A micro-batch of a later step is as that of the first.
  bool of(int32_t stage, int32_t microBatch) const {
    return cells.empty() ? uniform : cells[indexOf(stage, microBatch)];
  }
  /// True if some backward is split, and if some is whole.
  bool any() const;
  bool anyWhole() const;
  /// The same splits, stated as all or none where they are.
  Splits simplified() const;

  bool operator==(const Splits &) const = default;

private:
  size_t indexOf(int32_t stage, int32_t microBatch) const {
    return static_cast<size_t>(stage) * width + microBatch % width;
  }

  bool uniform = false;
  int32_t width = 0;
  /// Empty, or by stage and micro-batch.
  std::vector<bool> cells;
};

/// One training step, and what of its plan is not its order. Micro-batches are
/// numbered 0..N-1 over all pipelines. Without a flush at its end (`updates`) a
/// step overlaps with the next, and the problem is the run of `steps` of them:
/// micro-batch m of step k has the number k N + m.
struct Problem : Workload {
  std::vector<Pipeline> pipelines;
  Splits splits;
  Updates updates = Updates::Flush;
  int32_t steps = 1; ///< 1 where a flush ends each, else at least 2

  using Workload::cost;
  /// A forward takes as many times longer as it covers micro-batches, a part of
  /// a backward its share: see `share`.
  int64_t cost(const Action &action) const;
  /// Of one step.
  int32_t microBatches() const;
};

/// Part `part` of `parts` of `whole` in integers: the parts sum to the whole.
inline int64_t share(int64_t whole, int32_t part, int32_t parts) {
  int64_t each = whole / parts, rest = whole % parts;
  if (rest == 0)
    return each;
  return each + rest * (part + 1) / parts - rest * part / parts;
}

/// Empty if `problem` is well formed, else the first thing that is wrong: no
/// workers or copies, a cost below 1 or below the parts that it is cut into, a
/// negative update, size or message time, more tied bytes than both stages
/// have, buckets of less than 8 bytes, times or bytes that overflow, a
/// placement that does not name one worker in [0, workers) for every stage, a
/// pipeline without micro-batches, a micro-batch that is not in exactly one
/// pipeline, forwards that do not cover a pipeline's micro-batches in ranges of
/// consecutive numbers, recomputation that is not said of each stage, steps
/// that do not go with the updates, or too few micro-batches for steps that
/// overlap.
std::string check(const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_PROBLEM_H
