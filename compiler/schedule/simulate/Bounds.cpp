//===- Bounds.cpp - Lower bounds of the makespan --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Bounds.h"

#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/simulate/Memory.h"

#include <algorithm>
#include <map>

namespace chimera::schedule {

namespace {

__extension__ using Wide = __int128;

/// All actions of one kind on one stage that belong to a set of equal chains
/// (Chain). `load` is their total time, with receives and sends. None of these
/// actions can start before `head`. After the end of each action, the rest of
/// its chain takes at least `tail`.
struct ActionGroup {
  int32_t worker;
  int64_t head, load, tail;
};

/// Describes `count` equal chains of a pipeline. A chain is one forward over
/// `batches` micro-batches on every stage, followed by the backwards of these
/// micro-batches on every stage, in all their parts. A fused recompute counts
/// as part of its backward.
class Chain {
public:
  /// `splits` has, for each stage, how many of the `batches` · `count`
  /// backwards are split.
  Chain(const Problem &problem, const Pipeline &pipeline, int32_t batches,
        int64_t count, std::vector<int64_t> splits)
      : problem(problem), pipeline(pipeline), batches(batches), count(count),
        stages(static_cast<int32_t>(problem.stages.size())),
        splits(std::move(splits)) {
    int64_t time = 0;
    for (int32_t s = 0; s < stages; ++s) {
      forwardAt.push_back(time);
      time += forwardLoad(s) + messageTime(kFlight, s, whole());
    }
    backwardAt.resize(stages);
    for (int32_t s = stages; s-- > 0;) {
      backwardAt[s] = time;
      time += leastBackward(s) + messageTime(kFlight, s - 1, leastPart());
    }
    // The least time that a chain takes after a backward on stage s: for the
    // weight gradient, or for the rest of the chain on the stages before.
    int64_t rest = 0;
    for (int32_t s = 0; s < stages; ++s) {
      if (s > 0)
        rest += messageTime(kFlight, s - 1, leastPart()) + leastBackward(s - 1);
      rest = std::max(rest, leastPiece(weightGradient(s)));
      afterBackward.push_back(rest);
    }
    // Each stage runs the backwards of all micro-batches of a chain one after
    // another. This may take longer than the backwards of one micro-batch on
    // all stages.
    for (int32_t s = 0; s < stages; ++s)
      end =
          std::max(end, backwardAt[s] +
                            batches * (leastBackwardTime(s) + messageLoad(s)) +
                            afterBackward[s]);
  }

  /// The least time of one chain alone.
  int64_t length() const { return end; }

  /// A lower bound of the sum of bytes times time over all stashes on `stage`.
  /// A stash is live from the start of its forward to the end of its backward
  /// or input gradient. After an input gradient, the weight stash is live until
  /// the weight gradient ends. If the stage is recomputed, its stash is live
  /// only from the start of the recompute. An early recompute may be left out,
  /// so a stage with early recomputes uses the shorter of the times with and
  /// without one. If `least` is true, both stashes of a split backward count
  /// with the size of the smaller one.
  Wide stashTime(int32_t stage, bool least) const {
    const int64_t way =
        backwardAt[stage] + messageTime(kReceive, stage, leastPart()) -
        forwardAt[stage] - messageTime(kReceive, stage - 1, whole());
    auto stashTimes = [&](bool isSplit) {
      auto [stash, weightStash] = stashesOf(stage, isSplit && least);
      int64_t last = leastPiece(backwardTime(stage, isSplit));
      int64_t time = way + last;
      if (problem.recomputeOf(stage) == Recompute::Fused)
        time = last;
      else if (problem.recomputeOf(stage) == Recompute::Early)
        time = std::min(
            time, last + leastPiece(problem.cost(Kind::Recompute, stage)));
      int64_t after = isSplit ? leastPiece(leastWeightGradient(stage)) : 0;
      return static_cast<Wide>(stash) * time +
             static_cast<Wide>(weightStash) * after;
    };
    return stashTimes(false) * (batches * count - splits[stage]) +
           stashTimes(true) * splits[stage];
  }

  void appendGroups(std::vector<ActionGroup> &groups) const {
    for (int32_t s = 0; s < stages; ++s) {
      int32_t worker = pipeline.workers[s];
      int64_t all = batches * count;
      int64_t forwards = forwardLoad(s);
      groups.push_back({worker, forwardAt[s], forwards * count,
                        end - forwardAt[s] - forwards});
      groups.push_back({worker, backwardAt[s],
                        messageLoad(s) * all +
                            backwardTime(s, false) * (all - splits[s]) +
                            backwardTime(s, true) * splits[s],
                        afterBackward[s]});
      if (splits[s] > 0)
        groups.push_back({worker, backwardAt[s] + leastBackward(s),
                          leastWeightGradient(s) * splits[s], 0});
    }
  }

  /// The time without alpha of all messages between stage `s` and the next
  /// stage, which is on another worker: of forwards, and of backwards.
  std::pair<int64_t, int64_t> messages(int32_t s) const {
    int64_t alpha = linkAfter(s).alpha;
    return {(messageTime(kFlight, s, whole()) - alpha) * count,
            (allParts(kFlight, s) - alpha * pipeline.backwardParts) * batches *
                count};
  }

private:
  /// The sizes of the stash and of the weight stash. If `least` is true, both
  /// values are the smaller of the two sizes.
  std::pair<int64_t, int64_t> stashesOf(int32_t stage, bool least) const {
    StageBytes bytes = problem.bytesOf(stage);
    if (least)
      bytes.stash = bytes.weightStash =
          std::min(bytes.stash, bytes.weightStash);
    return {bytes.stash, bytes.weightStash};
  }
  Action whole() const {
    return {Kind::Forward, 0, 0, 0, static_cast<uint16_t>(batches)};
  }
  /// Part 0 of the backward of a micro-batch. No part is smaller.
  Action leastPart() const {
    return {Kind::Backward,
            0,
            0,
            0,
            1,
            0,
            static_cast<uint8_t>(pipeline.backwardParts)};
  }
  int64_t leastPiece(int64_t time) const {
    return sizeOfPart(time, 0, pipeline.backwardParts);
  }
  /// Indices into Link::times.
  static constexpr size_t kFlight = 0, kSend = 1, kReceive = 2;

  const Link &linkAfter(int32_t s) const {
    return problem.linkBetween(pipeline.workers[s], pipeline.workers[s + 1]);
  }
  /// The time of the message of `action` between stage `s` and the next; 0 if
  /// there is no message. `of` selects the time: in flight, of the send or of
  /// the receive.
  int64_t messageTime(size_t of, int32_t s, const Action &action) const {
    return s < 0 || s + 1 == stages ||
                   pipeline.workers[s] == pipeline.workers[s + 1]
               ? 0
               : problem.messageTime(linkAfter(s).times()[of], s, action);
  }
  /// The sum of `messageTime` over the messages of all parts of a micro-batch's
  /// gradient.
  int64_t allParts(size_t of, int32_t s) const {
    int64_t time = 0;
    Action part = leastPart();
    for (int32_t k = 0; k < pipeline.backwardParts; ++k) {
      part.part = static_cast<uint8_t>(k);
      time += messageTime(of, s, part);
    }
    return time;
  }
  /// The time in which a worker is busy with a forward, its receive and its
  /// send.
  int64_t forwardLoad(int32_t s) const {
    return messageTime(kReceive, s - 1, whole()) + forward(s) +
           messageTime(kSend, s, whole());
  }
  /// The time of the receives and sends of all parts of a micro-batch's
  /// backward.
  int64_t messageLoad(int32_t s) const {
    return allParts(kReceive, s) + allParts(kSend, s - 1);
  }
  /// The time in which a worker is busy with the smallest part of a backward,
  /// its receive and its send.
  int64_t leastBackward(int32_t s) const {
    return messageTime(kReceive, s, leastPart()) +
           leastPiece(leastBackwardTime(s)) +
           messageTime(kSend, s - 1, leastPart());
  }
  /// The least time that a forward adds to its worker's load, alone or paired.
  int64_t forward(int32_t s) const {
    return std::min(problem.cost(Kind::Forward, s),
                    problem.stages[s].pairedForwardTime()) *
           batches;
  }
  /// The time of a micro-batch's backward until the gradient for the stage
  /// before is complete, with a fused recompute.
  int64_t backwardTime(int32_t s, bool isSplit) const {
    int64_t time =
        problem.cost(isSplit ? Kind::InputGradient : Kind::Backward, s);
    if (problem.recomputeOf(s) == Recompute::Fused)
      time += problem.cost(Kind::Recompute, s);
    return time;
  }
  bool anySplit(int32_t s) const { return splits[s] > 0; }
  bool anyWhole(int32_t s) const { return splits[s] < batches * count; }
  /// The smallest time of a backward on this stage, whole or split.
  int64_t leastBackwardTime(int32_t s) const {
    return anySplit(s) && anyWhole(s)
               ? std::min(backwardTime(s, false), backwardTime(s, true))
               : backwardTime(s, anySplit(s));
  }
  /// The least time that a weight gradient adds to its worker's load, alone or
  /// joined.
  int64_t leastWeightGradient(int32_t s) const {
    return std::min(problem.cost(Kind::WeightGradient, s),
                    problem.stages[s].joinedWeightGradientTime());
  }
  /// The least time of the weight gradient that follows each backward. 0 if
  /// some backward is whole, because no weight gradient follows that one.
  int64_t weightGradient(int32_t s) const {
    return anyWhole(s) ? 0 : leastWeightGradient(s);
  }

  const Problem &problem;
  const Pipeline &pipeline;
  int32_t batches;
  int64_t count;
  int32_t stages;
  std::vector<int64_t> splits; ///< of each stage
  std::vector<int64_t> forwardAt, backwardAt, afterBackward;
  int64_t end = 0;
};

/// The chains of a pipeline. All chains with the same number of micro-batches
/// in a forward are one Chain.
std::vector<Chain> chainsOf(const Problem &problem, const Pipeline &pipeline) {
  struct Counts {
    int64_t forwards = 0;
    std::vector<int64_t> splits;
  };
  std::map<int32_t, Counts> counts;
  size_t stages = problem.stages.size(), next = 0, forward = 0;
  bool anySplit = problem.splits.any();
  while (next < pipeline.microBatches.size()) {
    int32_t batches =
        pipeline.forwards.empty() ? 1 : pipeline.forwards[forward++];
    Counts &own = counts[batches];
    own.splits.resize(stages);
    ++own.forwards;
    for (int32_t i = 0; i < batches; ++i, ++next)
      for (size_t s = 0; anySplit && s < stages; ++s)
        own.splits[s] += problem.splits.isSplit(static_cast<int32_t>(s),
                                                pipeline.microBatches[next]);
  }
  std::vector<Chain> chains;
  for (auto &[batches, own] : counts) {
    for (int64_t &split : own.splits)
      split *= problem.steps;
    chains.emplace_back(problem, pipeline, batches,
                        own.forwards * problem.steps, std::move(own.splits));
  }
  return chains;
}

/// LB2 for the action groups of one worker. It is the maximum of h + t + load
/// over all pairs of a head h and a tail t. `load` is the total load of the
/// groups with a head of at least h and a tail of at least t.
int64_t headLoadTail(std::vector<ActionGroup> groups) {
  std::sort(groups.begin(), groups.end(),
            [](const ActionGroup &a, const ActionGroup &b) {
              return a.head > b.head;
            });
  int64_t most = 0;
  for (const ActionGroup &last : groups) {
    int64_t load = 0;
    for (const ActionGroup &c : groups)
      if (c.tail >= last.tail) {
        load += c.load;
        most = std::max(most, c.head + load + last.tail);
      }
  }
  return most;
}

Bound work(const std::vector<std::vector<ActionGroup>> &groups) {
  Bound bound{"LB1", "T >= max over workers of load", "always",
              "a worker runs one action at a time, or receives or sends"};
  for (const std::vector<ActionGroup> &row : groups) {
    int64_t load = 0;
    for (const ActionGroup &c : row)
      load += c.load;
    bound.time = std::max(bound.time, load);
  }
  return bound;
}

Bound oneMachine(const std::vector<std::vector<ActionGroup>> &groups) {
  Bound bound{
      "LB2",
      "T >= max over workers and sets Q of their actions of min head(Q) "
      "+ load(Q) + min tail(Q)",
      "always",
      "before the first of Q comes its head, after the last its tail, "
      "and none of Q overlap"};
  for (const std::vector<ActionGroup> &row : groups)
    bound.time = std::max(bound.time, headLoadTail(row));
  return bound;
}

Bound criticalPath(const std::vector<Chain> &chains) {
  Bound bound{"LB3",
              "T >= max over forwards of the time of its micro-batches alone",
              "always", "its actions and messages follow one another"};
  for (const Chain &chain : chains)
    bound.time = std::max(bound.time, chain.length());
  return bound;
}

/// For each worker, the bytes of its smallest gradient sum.
std::vector<int64_t> smallestSums(const Problem &problem) {
  std::vector<int64_t> sums(problem.workers, 0);
  if (problem.bytes.empty())
    return sums;
  std::fill(sums.begin(), sums.end(), INT64_MAX);
  for (const Pipeline &pipeline : problem.pipelines)
    for (size_t s = 0; s < pipeline.workers.size(); ++s) {
      int64_t &sum = sums[pipeline.workers[s]];
      sum = std::min(sum, problem.bytes[s].gradient());
    }
  return sums;
}

/// The sum of bytes times time over the stashes of a worker. A sum may need
/// more than 64 bits.
struct StashTime {
  Wide all = 0;
  Wide least = 0; ///< counts only the smaller stash of each split backward
};

/// LB4, by Little's law. An input gradient may release a part of its stash
/// before a gradient sum exists. So the bound is computed in two ways, and is
/// the larger result. The first way counts the gradient sum, and only the
/// smaller stash of each split backward. The second way counts all stashes, but
/// no gradient sum.
Bound memory(const Problem &problem, const std::vector<StashTime> &stashTimes) {
  Bound bound{
      "LB4",
      "T >= max over workers of sum of stash · residency over its "
      "micro-batches and stages / (cap - resident bytes - smallest "
      "gradient sum)",
      "memory caps above those bytes",
      "Little's law: a stash is live at least while its micro-batch goes to "
      "the last stage and back, or from its recompute on; all live "
      "stashes and a gradient sum must fit below the cap; of a split "
      "backward the smaller stash counts, or both without the sum"};
  std::vector<int64_t> resident = residentBytes(problem);
  std::vector<int64_t> sums = smallestSums(problem);
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w) {
    auto raise = [&](Wide bytesTime, int64_t room) {
      if (room > 0)
        bound.time = static_cast<int64_t>(std::max<Wide>(
            bound.time,
            std::min<Wide>((bytesTime + room - 1) / room, INT64_MAX)));
    };
    int64_t room = problem.memoryCaps[w] - resident[w];
    raise(stashTimes[w].least, room - sums[w]);
    raise(stashTimes[w].all, room);
  }
  return bound;
}

Bound sharedCores(const Problem &problem,
                  const std::vector<std::vector<ActionGroup>> &groups) {
  Bound bound{"LB6", "T >= max over nodes of load of its workers / cores",
              "workers that share cores",
              "each core runs one worker at a time"};
  size_t worker = 0;
  for (const CoreGroup &group : coreGroups(problem)) {
    double load = 0;
    for (int32_t i = 0; i < group.workers; ++i)
      for (const ActionGroup &c : groups[worker++])
        load += static_cast<double>(c.load);
    bound.time = std::max(bound.time, static_cast<int64_t>(load / group.cores));
  }
  return bound;
}

/// The total time of the messages on each channel.
class Channels {
public:
  void add(const Chain &chain, const Pipeline &pipeline) {
    const std::vector<int32_t> &workers = pipeline.workers;
    for (size_t s = 0; s + 1 < workers.size(); ++s) {
      if (workers[s] == workers[s + 1])
        continue;
      auto [forwards, backwards] = chain.messages(static_cast<int32_t>(s));
      times[{workers[s], workers[s + 1]}] += forwards;
      times[{workers[s + 1], workers[s]}] += backwards;
    }
  }

  int64_t most() const {
    int64_t most = 0;
    for (const auto &[channel, time] : times)
      most = std::max(most, time);
    return most;
  }

private:
  std::map<std::pair<int32_t, int32_t>, int64_t> times;
};

Bound messages(const Channels &channels) {
  Bound bound{
      "LB5", "T >= max over channels of the time of its messages without alpha",
      "messages of one channel follow one another",
      "a link carries no more than its bandwidth"};
  bound.holdsForSimulator = false;
  bound.time = channels.most();
  return bound;
}

} // namespace

std::vector<Bound> bounds(const Problem &problem) {
  std::vector<Chain> chains;
  std::vector<ActionGroup> all;
  std::vector<StashTime> stashTimes(problem.workers);
  Channels channels;
  for (const Pipeline &pipeline : problem.pipelines)
    for (const Chain &chain : chainsOf(problem, pipeline)) {
      chain.appendGroups(all);
      for (size_t s = 0; s < pipeline.workers.size(); ++s) {
        auto stage = static_cast<int32_t>(s);
        StashTime &ofWorker = stashTimes[pipeline.workers[s]];
        ofWorker.all += chain.stashTime(stage, /*least=*/false);
        ofWorker.least += chain.stashTime(stage, /*least=*/true);
      }
      channels.add(chain, pipeline);
      chains.push_back(chain);
    }
  std::vector<std::vector<ActionGroup>> groups(problem.workers);
  for (const ActionGroup &c : all)
    groups[c.worker].push_back(c);
  return {work(groups),         oneMachine(groups),
          criticalPath(chains), memory(problem, stashTimes),
          messages(channels),   sharedCores(problem, groups)};
}

int64_t busiestChannel(const Problem &problem) {
  auto hasBandwidth = [](const LinkClass *links) {
    return links->link.beta > 0;
  };
  Channels channels;
  if (std::ranges::any_of(problem.classes(), hasBandwidth))
    for (const Pipeline &pipeline : problem.pipelines)
      for (const Chain &chain : chainsOf(problem, pipeline))
        channels.add(chain, pipeline);
  return channels.most() / problem.steps;
}

const Bound &bestBound(const std::vector<Bound> &bounds) {
  return *std::max_element(bounds.begin(), bounds.end(),
                           [](const Bound &a, const Bound &b) {
                             return (a.holdsForSimulator ? a.time : -1) <
                                    (b.holdsForSimulator ? b.time : -1);
                           });
}

double gapTo(const Timing &timing, const Bound &bound) {
  return static_cast<double>(timing.makespan - bound.time) /
         static_cast<double>(bound.time);
}

} // namespace chimera::schedule
