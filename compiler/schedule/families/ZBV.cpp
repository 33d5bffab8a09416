//===- ZBV.cpp - Zero bubbles on a V --------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ZB-V: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR'24, and "Pipeline
// Parallelism with Controllable Memory", NeurIPS'24, Figure 3. Worker w has two
// stages, its chunks: stage w on the way down the workers and stage 2D-1-w on
// the way back up. So the first and the last stage are on the same worker. All
// backwards are split, and weight gradients fill idle time.
//
// D=2, N=2, equal times, stages on the way back up with ':
//
//   t    0   1   2   3   4   5   6   7   8   9   10  11  12  13
//   P0   F0  F1  .   F0' I0' W0' F1' I1' W1' I0  W0  .   I1  W1
//   P1   .   F0  F0' F1  F1' I0' W0' I0  W0  I1' W1' I1  W1  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

std::string checkZBV(const Request &request) {
  if (request.stageCount() == 2 * request.workers)
    return {};
  return "expected two stages for each of the " +
         std::to_string(request.workers) + " workers, got " +
         std::to_string(request.stageCount()) + " stages";
}

/// Appends actions to the order of one worker. Each call appends the next
/// micro-batch of its kind and chunk, or nothing if all N micro-batches are
/// done.
class Row {
public:
  Row(int32_t stages, int32_t worker, int32_t microBatches,
      std::vector<Action> &actions)
      : stageOf{worker, stages - 1 - worker}, microBatches(microBatches),
        actions(actions) {}

  void forward(int32_t chunk) { put(Kind::Forward, chunk); }
  void inputGradient(int32_t chunk) { put(Kind::InputGradient, chunk); }
  void weightGradient(int32_t chunk) { put(Kind::WeightGradient, chunk); }
  void backward(int32_t chunk) {
    inputGradient(chunk);
    weightGradient(chunk);
  }
  /// The number of calls of `forward` for a chunk.
  int32_t forwards(int32_t chunk) const {
    return next[static_cast<size_t>(Kind::Forward)][chunk];
  }

private:
  void put(Kind kind, int32_t chunk) {
    int32_t microBatch = next[static_cast<size_t>(kind)][chunk]++;
    if (microBatch < microBatches)
      actions.push_back({kind, 0, stageOf[chunk], microBatch});
  }

  int32_t stageOf[2];
  int32_t microBatches;
  int32_t next[5][2] = {};
  std::vector<Action> &actions;
};

Plan placeZBV(const Request &request) {
  int32_t stages = request.stageCount();
  Plan plan =
      placeOne(request, [&](int32_t s) { return std::min(s, stages - 1 - s); });
  plan.splits = true;
  return plan;
}

/// A worker runs forwards of chunk 0 until micro-batch 0 arrives at chunk 1 of
/// the worker. Then the worker alternates between forwards and backwards of
/// both chunks, and at the end it runs the remaining backwards. If N < 2D-1,
/// the order is the one for 2D-1 micro-batches, without the actions of
/// micro-batches from N on.
PlanOrError makeZBV(const Request &request) {
  Plan plan = placeZBV(request);
  int32_t workers = request.workers, stages = 2 * workers;
  plan.order.workers.resize(workers);
  int32_t all = std::max(request.microBatches, stages - 1);
  for (int32_t w = 0; w < workers; ++w) {
    Row row(stages, w, request.microBatches, plan.order.workers[w]);
    auto repeat = [](int32_t times, auto body) {
      for (int32_t i = 0; i < times; ++i)
        body();
    };
    repeat(2 * (workers - w) - 1, [&] { row.forward(0); });
    repeat(w, [&] {
      row.forward(1);
      row.forward(0);
    });
    repeat(workers - w, [&] {
      row.forward(1);
      row.backward(1);
    });
    while (row.forwards(0) < all || row.forwards(1) < all) {
      if (row.forwards(0) < all)
        row.forward(0);
      row.backward(0);
      row.forward(1);
      row.backward(1);
    }
    repeat(w, [&] {
      row.inputGradient(0);
      row.inputGradient(1);
    });
    repeat(workers - w, [&] { row.backward(0); });
    repeat(w, [&] { row.weightGradient(1); });
    repeat(w, [&] { row.weightGradient(0); });
  }
  return plan;
}

constexpr const char *kZBVSource = "Qi et al., ICLR'24, section 6";

bool isFull(const Sizes &s) { return s.microBatches >= 2 * s.workers - 1; }

constexpr BubbleFormula kZBVBubbles[] = {
    {"(D-1)/(6N+D-1)", "N >= 2D-1, f = i = w", kZBVSource,
     [](const Sizes &s) {
       return isFull(s) && s.forward == s.inputGradient &&
              s.forward == s.weightGradient;
     },
     [](const Sizes &s) { return ratio(s.workers - 1, 6 * s.microBatches); },
     /*isSplit=*/true}};

constexpr PeakFormula kZBVPeaks[] = {
    {"2D", "N >= 2D-1", kZBVSource, isFull,
     [](const Sizes &s) { return std::pair(2 * s.workers, 2 * s.workers); },
     /*isSplit=*/true}};

} // namespace

const Scheme kZBV = {
    "zb-v",
    "split backwards on a V: with equal times and N >= 2D-1, workers are idle "
    "only at the start and the end of a step",
    "any D >= 1, S = 2D, any N >= 1",
    {},
    checkZBV,
    placeZBV,
    makeZBV,
    kZBVBubbles,
    kZBVPeaks,
    /*note=*/nullptr,
    /*stagesPerWorker=*/2};

} // namespace chimera::schedule
