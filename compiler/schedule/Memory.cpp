//===- Memory.cpp - What a worker holds -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Memory.h"

#include "compiler/schedule/Steps.h"

#include <algorithm>
#include <unordered_map>

namespace chimera::schedule {

namespace {

/// Walks one worker's order. The stash of a piece, a micro-batch or a part of
/// one, comes with its forward, or with its recompute; until that the forward's
/// input stays instead of it.
class Walk {
public:
  Walk(const Problem &problem, std::span<const Action> order)
      : problem(problem), order(order) {
    parts = mostParts(problem.pipelines);
    inPieces =
        parts > 1 || std::ranges::any_of(problem.recompute, [](auto how) {
          return how != Recompute::None;
        });
    if (inPieces)
      findRecomputes();
  }

  /// Calls `visit(index, bytes, bytesAfter, activations)` for each action:
  /// what the worker holds while it runs and after it.
  template <typename Visit> void run(int64_t bytes, Visit visit) {
    int32_t activations = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Action &action = order[i];
      Sizes size = sizesOf(action.stage);
      // What it holds more while it runs, and less behind it.
      int64_t passing = 0, release = 0;
      int32_t less = 0;
      switch (action.kind) {
      case Kind::Forward:
        passing = size.passing * action.microBatches;
        if (inPieces) {
          passing -= forward(action, bytes, activations);
        } else {
          bytes += size.stash * action.microBatches;
          activations += action.microBatches;
        }
        break;
      case Kind::Recompute:
        bytes += piece(action, size.stash);
        release = piece(action, size.input);
        activations += holdsOneMore(action);
        break;
      case Kind::InputGradient:
        // The larger of both stashes counts.
        release = piece(action, size.stash) - piece(action, size.weightStash);
        passing = piece(action, size.passing) + std::max<int64_t>(-release, 0);
        break;
      case Kind::Backward:
        passing = piece(action, size.passing);
        [[fallthrough]];
      case Kind::WeightGradient:
        release =
            piece(action, action.kind == Kind::Backward ? size.stash
                                                        : size.weightStash) +
            addToSum(action, bytes);
        less = action.parts == 1 || --held[keyOf(action)] == 0;
        break;
      }
      visit(i, bytes + passing, bytes - release, activations);
      bytes -= release;
      activations -= less;
    }
  }

private:
  /// Bytes of a stage: its stashes, what its forward reads, and what its
  /// forward or backward reads and gives.
  struct Sizes {
    int64_t stash = 0, weightStash = 0, input = 0, passing = 0;
  };

  Sizes sizesOf(int32_t stage) const {
    if (problem.bytes.empty())
      return {};
    Sizes sizes{problem.bytes[stage].stash, problem.bytes[stage].weightStash};
    sizes.input = stage == 0 ? 0 : problem.bytes[stage - 1].boundary;
    sizes.passing = sizes.input;
    if (stage + 1 < std::ssize(problem.bytes))
      sizes.passing += problem.bytes[stage].boundary;
    return sizes;
  }

  void findRecomputes() {
    microBatches = problem.microBatches() * problem.steps;
    int64_t count = 0;
    for (const Action &action : order)
      if (rows.try_emplace(action.stage, count * microBatches).second)
        ++count;
    held.assign(count * microBatches, 0);
    recomputed.assign(count * microBatches * parts, false);
    for (const Action &action : order)
      if (action.kind == Kind::Recompute)
        recomputed[keyOf(action) * parts + action.part] = true;
  }

  /// Every piece of a forward: its stash, or its input until it is recomputed.
  /// Returns the bytes of those inputs, which the forward reads in place.
  int64_t forward(const Action &action, int64_t &bytes, int32_t &activations) {
    int64_t inputs = 0;
    Sizes size = sizesOf(action.stage);
    Action each = action;
    each.microBatches = 1;
    each.parts =
        static_cast<uint8_t>(problem.pipelines[action.pipeline].backwardParts);
    for (int32_t i = 0; i < action.microBatches; ++i, ++each.microBatch)
      for (int32_t part = 0; part < each.parts; ++part) {
        each.part = static_cast<uint8_t>(part);
        bool again = recomputed[keyOf(each) * parts + part];
        int64_t held = piece(each, again ? size.input : size.stash);
        bytes += held;
        inputs += again ? held : 0;
        activations += again ? 0 : holdsOneMore(each);
      }
    return inputs;
  }

  /// 1 where `action` brings the first piece of its micro-batch.
  int32_t holdsOneMore(const Action &action) {
    return action.parts == 1 || held[keyOf(action)]++ == 0;
  }

  /// Adds the bytes of a sum of gradients that begins with `action` to `bytes`;
  /// returns those of one that ends with it.
  int64_t addToSum(const Action &action, int64_t &bytes) {
    if (problem.bytes.empty())
      return 0;
    int64_t sum = problem.bytes[action.stage].gradient();
    int64_t &left =
        missing[action.pipeline * std::ssize(problem.stages) + action.stage];
    if (left == 0) {
      bytes += sum;
      left = piecesOfSum(problem.pipelines[action.pipeline]);
    }
    bool ends = --left == 0;
    return ends && stepsOverlap(problem.updates) ? sum : 0;
  }

  int64_t piecesOfSum(const Pipeline &pipeline) const {
    bool each = problem.updates == Updates::EachMicroBatch;
    return (each ? 1 : std::ssize(pipeline.microBatches)) *
           int64_t(pipeline.backwardParts);
  }

  static int64_t piece(const Action &action, int64_t bytes) {
    return action.parts == 1 ? bytes : share(bytes, action.part, action.parts);
  }
  /// Of a micro-batch on a stage.
  int64_t keyOf(const Action &action) const {
    return rows.find(action.stage)->second + action.microBatch;
  }

  const Problem &problem;
  std::span<const Action> order;
  int32_t parts = 1; ///< the most of a micro-batch
  /// False where every micro-batch keeps its whole stash: what follows is
  /// empty.
  bool inPieces;
  int64_t microBatches = 0;
  /// Key of the first micro-batch of each stage that the worker has.
  std::unordered_map<int32_t, int64_t> rows;
  std::vector<bool> recomputed; ///< pieces, `parts` of them a key
  /// By pipeline and stage: the backwards that its sum of gradients still
  /// misses, 0 where there is no sum.
  std::unordered_map<int64_t, int64_t> missing;
  /// Of micro-batches in parts: how many pieces there are activations of.
  std::vector<int32_t> held;
};

} // namespace

std::vector<int64_t> residentBytes(const Problem &problem) {
  std::vector<int64_t> sums(problem.workers, 0);
  if (!problem.bytes.empty())
    for (const Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        sums[pipeline.workers[s]] +=
            weightVersions(problem, static_cast<int32_t>(s)) *
                problem.bytes[s].weights +
            problem.bytes[s].optimizer;
  return sums;
}

MemoryPeak memoryPeak(const Problem &problem, std::span<const Action> order,
                      int64_t resident) {
  MemoryPeak peak;
  peak.bytes = resident;
  peak.index = order.empty() ? -1 : 0;
  auto raise = [&](size_t i, int64_t bytes, int64_t, int32_t activations) {
    if (bytes > peak.bytes) {
      peak.bytes = bytes;
      peak.index = static_cast<int32_t>(i);
    }
    peak.activations = std::max(peak.activations, activations);
  };
  Walk(problem, order).run(peak.bytes, raise);
  return peak;
}

std::optional<CapExcess> capExcess(const Problem &problem,
                                   const Schedule &schedule) {
  std::optional<CapExcess> most;
  int64_t above = 0;
  int32_t workers = 0;
  std::vector<int64_t> resident = residentBytes(problem);
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w) {
    auto worker = static_cast<int32_t>(w);
    MemoryPeak peak = memoryPeak(problem, schedule.workers[w], resident[w]);
    int64_t excess = peak.bytes - problem.memoryCaps[w];
    workers += excess > 0;
    if (excess <= above)
      continue;
    above = excess;
    most = CapExcess{worker, peak, 0};
  }
  if (most)
    most->others = workers - 1;
  return most;
}

std::string othersAbove(int64_t others) {
  if (others <= 0)
    return {};
  return ", and " + std::to_string(others) +
         (others == 1 ? " other worker" : " other workers") + " above it";
}

std::string describe(const CapExcess &excess, const Schedule &schedule) {
  std::string text = "at least " + std::to_string(excess.peak.bytes) +
                     " bytes on worker " + std::to_string(excess.worker);
  if (excess.peak.index >= 0)
    text +=
        " at " + describe(schedule.workers[excess.worker][excess.peak.index]);
  return text + othersAbove(excess.others);
}

std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker,
                                         int64_t resident) {
  const std::vector<Action> &order = schedule.workers[worker];
  std::vector<MemorySample> samples = {{0, resident}};
  auto add = [&](int64_t time, int64_t bytes) {
    if (samples.back().time == time)
      samples.back().bytes = bytes;
    else
      samples.push_back({time, bytes});
  };
  auto sample = [&](size_t i, int64_t bytes, int64_t bytesAfter, int32_t) {
    add(timing.starts[worker][i], bytes);
    add(timing.ends[worker][i], bytesAfter);
  };
  Walk(problem, order).run(resident, sample);
  return samples;
}

} // namespace chimera::schedule
