//===- Bounds.cpp - What no schedule can beat -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Bounds.h"

#include "compiler/schedule/Memory.h"

#include <algorithm>
#include <map>

namespace chimera::schedule {

namespace {

/// All micro-batches of one pipeline on one stage, one kind of action: each
/// takes `cost`, can start at `head` at the earliest and leaves `tail` to do
/// after its end.
struct Class {
  int32_t worker;
  int64_t head, cost, tail, count;
};

/// The chain of one micro-batch through one pipeline: forwards, then backwards.
class Chain {
public:
  Chain(const Problem &problem, const Pipeline &pipeline)
      : problem(problem), pipeline(pipeline),
        stages(static_cast<int32_t>(problem.stages.size())),
        first(problem.splitBackward ? Kind::InputGradient : Kind::Backward) {
    int64_t time = 0;
    for (int32_t s = 0; s < stages; ++s) {
      forwardAt.push_back(time);
      time += problem.cost(Kind::Forward, s);
      if (s + 1 < stages)
        time += transfer(s);
    }
    backwardAt.resize(stages);
    for (int32_t s = stages; s-- > 0;) {
      backwardAt[s] = time;
      time += problem.cost(first, s);
      if (s > 0)
        time += transfer(s - 1);
    }
    // The weight gradient of a stage, or what comes after the backward on the
    // stages before.
    int64_t rest = 0;
    for (int32_t s = 0; s < stages; ++s) {
      if (s > 0)
        rest += transfer(s - 1) + problem.cost(first, s - 1);
      rest = std::max(rest, weightGradient(s));
      afterBackward.push_back(rest);
    }
    end = backwardAt[stages - 1] + problem.cost(first, stages - 1) +
          afterBackward[stages - 1];
  }

  /// The time of one micro-batch alone.
  int64_t length() const { return end; }

  /// From the start of the forward to the end of the last action on `stage`.
  int64_t residency(int32_t stage) const {
    return backwardAt[stage] + problem.cost(first, stage) +
           weightGradient(stage) - forwardAt[stage];
  }

  void appendClasses(std::vector<Class> &classes) const {
    auto count = static_cast<int64_t>(pipeline.microBatches.size());
    for (int32_t s = 0; s < stages; ++s) {
      int32_t worker = pipeline.workers[s];
      int64_t forward = problem.cost(Kind::Forward, s);
      classes.push_back(
          {worker, forwardAt[s], forward, end - forwardAt[s] - forward, count});
      int64_t backward = problem.cost(first, s);
      classes.push_back(
          {worker, backwardAt[s], backward, afterBackward[s], count});
      if (problem.splitBackward)
        classes.push_back(
            {worker, backwardAt[s] + backward, weightGradient(s), 0, count});
    }
  }

private:
  int64_t transfer(int32_t s) const {
    return pipeline.workers[s] == pipeline.workers[s + 1] ? 0
                                                          : problem.transfer(s);
  }
  int64_t weightGradient(int32_t s) const {
    return problem.splitBackward ? problem.cost(Kind::WeightGradient, s) : 0;
  }

  const Problem &problem;
  const Pipeline &pipeline;
  int32_t stages;
  Kind first; ///< of the actions of a backward
  std::vector<int64_t> forwardAt, backwardAt, afterBackward;
  int64_t end = 0;
};

/// max over h and t of h + t + the load of all classes with a head of at least
/// h and a tail of at least t: the sets that matter are those.
int64_t headLoadTail(std::vector<Class> classes) {
  std::sort(classes.begin(), classes.end(),
            [](const Class &a, const Class &b) { return a.head > b.head; });
  int64_t most = 0;
  for (const Class &last : classes) {
    int64_t load = 0;
    for (const Class &c : classes)
      if (c.tail >= last.tail) {
        load += c.cost * c.count;
        most = std::max(most, c.head + load + last.tail);
      }
  }
  return most;
}

Bound work(const std::vector<std::vector<Class>> &classes) {
  Bound bound{"LB1", "T >= max over workers of load", "always",
              "a worker runs one action at a time"};
  for (const std::vector<Class> &row : classes) {
    int64_t load = 0;
    for (const Class &c : row)
      load += c.cost * c.count;
    bound.time = std::max(bound.time, load);
  }
  return bound;
}

Bound oneMachine(const std::vector<std::vector<Class>> &classes) {
  Bound bound{
      "LB2",
      "T >= max over workers and sets Q of their actions of min head(Q) "
      "+ load(Q) + min tail(Q)",
      "always",
      "before the first of Q comes its head, after the last its tail, "
      "and none of Q overlap"};
  for (const std::vector<Class> &row : classes)
    bound.time = std::max(bound.time, headLoadTail(row));
  return bound;
}

Bound criticalPath(const std::vector<Chain> &chains) {
  Bound bound{"LB3", "T >= max over pipelines of the time of one micro-batch",
              "always", "its actions and messages follow one another"};
  for (const Chain &chain : chains)
    bound.time = std::max(bound.time, chain.length());
  return bound;
}

/// Little's law, in __int128: bytes times time is more than 64 bits hold.
Bound memory(const Problem &problem, const std::vector<Chain> &chains) {
  Bound bound{"LB4",
              "T >= max over workers of sum of stash · residency over its "
              "micro-batches and stages / (cap - resident bytes)",
              "memory caps above the resident bytes",
              "a stash is held for at least its micro-batch's way to the last "
              "stage and back"};
  __extension__ using Wide = __int128;
  std::vector<Wide> held(problem.workers, 0);
  for (size_t p = 0; p < chains.size(); ++p)
    for (size_t s = 0; s < problem.stages.size(); ++s) {
      auto stage = static_cast<int32_t>(s);
      held[problem.pipelines[p].workers[s]] +=
          static_cast<Wide>(problem.bytesOf(stage).stash) *
          chains[p].residency(stage) *
          static_cast<Wide>(problem.pipelines[p].microBatches.size());
    }
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w) {
    int64_t room =
        problem.memoryCaps[w] - residentBytes(problem, static_cast<int32_t>(w));
    if (room > 0)
      bound.time = static_cast<int64_t>(std::max<Wide>(
          bound.time, std::min<Wide>((held[w] + room - 1) / room, INT64_MAX)));
  }
  return bound;
}

Bound messages(const Problem &problem) {
  Bound bound{
      "LB5", "T >= max over channels of the time of its messages without alpha",
      "messages of one channel follow one another",
      "a link carries no more than its bandwidth"};
  bound.simulated = false;
  std::map<std::pair<int32_t, int32_t>, int64_t> channels;
  for (const Pipeline &pipeline : problem.pipelines)
    for (size_t s = 0; s + 1 < pipeline.workers.size(); ++s) {
      int32_t from = pipeline.workers[s], to = pipeline.workers[s + 1];
      if (from == to)
        continue;
      int64_t time =
          (problem.transfer(static_cast<int32_t>(s)) - problem.link.alpha) *
          static_cast<int64_t>(pipeline.microBatches.size());
      channels[{from, to}] += time;
      channels[{to, from}] += time;
    }
  for (const auto &[channel, time] : channels)
    bound.time = std::max(bound.time, time);
  return bound;
}

} // namespace

std::vector<Bound> bounds(const Problem &problem) {
  std::vector<Chain> chains;
  std::vector<Class> all;
  for (const Pipeline &pipeline : problem.pipelines) {
    chains.emplace_back(problem, pipeline);
    chains.back().appendClasses(all);
  }
  std::vector<std::vector<Class>> classes(problem.workers);
  for (const Class &c : all)
    classes[c.worker].push_back(c);
  return {work(classes), oneMachine(classes), criticalPath(chains),
          memory(problem, chains), messages(problem)};
}

const Bound &best(const std::vector<Bound> &bounds) {
  return *std::max_element(
      bounds.begin(), bounds.end(), [](const Bound &a, const Bound &b) {
        return (a.simulated ? a.time : -1) < (b.simulated ? b.time : -1);
      });
}

double gap(const Timing &timing, const Bound &bound) {
  return static_cast<double>(timing.makespan - bound.time) /
         static_cast<double>(bound.time);
}

} // namespace chimera::schedule
