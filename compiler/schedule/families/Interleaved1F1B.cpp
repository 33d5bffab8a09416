//===- Interleaved1F1B.cpp - 1F1B over several chunks a worker ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interleaved 1F1B: Narayanan et al., "Efficient Large-Scale Language Model
// Training on GPU Clusters Using Megatron-LM", SC'21, section 2.2 and Figure 4.
// Stage s is on worker s mod D. A worker has v = S/D stages, its chunks. The
// idle times at the start and the end of a step are v times shorter than with
// 1F1B.
//
// D=2, N=2, equal times, two stages a worker, the second with ':
//
//   t    0   1   2   3   4   5   6   7   8   9
//   P0   F0  F1  F0' F1' .   B0' .   B1' B0  B1
//   P1   .   F0  F1  F0' B0' F1' B1' B0  B1  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// Micro-batches run in groups: each group passes through all chunks of a
/// worker before the next group begins. There are floor(N/D) groups, but at
/// least one.
int32_t groupCount(int32_t microBatches, int32_t workers) {
  return std::max(1, microBatches / workers);
}
/// The number of micro-batches in a group. Requires that all groups have the
/// same size.
int32_t groupOf(const Request &request) {
  return request.microBatches /
         groupCount(request.microBatches, request.workers);
}

std::string checkInterleaved(const Request &request) {
  int32_t workers = request.workers, count = request.microBatches;
  if (request.stageCount() % workers != 0)
    return "expected a number of stages that is a multiple of the " +
           std::to_string(workers) + " workers, got " +
           std::to_string(request.stageCount());
  auto areEqual = [&](int32_t count) {
    return count % groupCount(count, workers) == 0;
  };
  if (areEqual(count))
    return {};
  // Both loops are short, because all groups are equal at every multiple of D.
  int32_t fewer = count, more = count;
  while (!areEqual(fewer))
    --fewer;
  while (!areEqual(more))
    ++more;
  return "expected micro-batches that divide into " +
         std::to_string(groupCount(count, workers)) +
         " equal groups (one for every " + std::to_string(workers) + "), got " +
         std::to_string(count) + ": use " + std::to_string(fewer) + " or " +
         std::to_string(more);
}

/// Action number `index`, from 0, among the actions of this kind on worker w.
/// With groups of G micro-batches, the forward is of chunk (index mod vG) div G
/// and of micro-batch (index div vG) G + index mod G. The backward is of the
/// same micro-batch, with chunks counted from the last.
Action actionAt(Kind kind, const Request &request, int32_t worker,
                int32_t index) {
  int32_t chunks = request.stageCount() / request.workers;
  int32_t group = groupOf(request), round = chunks * group;
  int32_t chunk = index % round / group;
  if (kind == Kind::Backward)
    chunk = chunks - 1 - chunk;
  return {kind, 0, chunk * request.workers + worker,
          index / round * group + index % group};
}

/// The number of warm-up forwards of worker w. After these, the worker
/// alternates between forwards and backwards. With v chunks and groups of G
/// micro-batches, the number is (v-1)G, for the chunks before the last one,
/// plus two for each worker after w. With one chunk the schedule is 1F1B, in
/// which one warm-up forward for each later worker is enough.
int32_t warmUpOf(const Request &request, int32_t worker) {
  int32_t chunks = request.stageCount() / request.workers;
  int32_t laterWorkers = request.workers - 1 - worker;
  int32_t warmUp = chunks == 1
                       ? laterWorkers
                       : 2 * laterWorkers + (chunks - 1) * groupOf(request);
  return std::min(warmUp, request.microBatches * chunks);
}

Plan placeInterleaved(const Request &request) {
  return placeOne(request,
                  [&](int32_t stage) { return stage % request.workers; });
}

PlanOrError makeInterleaved(const Request &request) {
  Plan plan = placeInterleaved(request);
  int32_t workers = request.workers;
  plan.order.workers.resize(workers);
  int32_t count = request.stageCount() / workers * request.microBatches;
  for (int32_t w = 0; w < workers; ++w) {
    std::vector<Action> &row = plan.order.workers[w];
    int32_t warmUp = warmUpOf(request, w);
    for (int32_t i = 0; i < count + warmUp; ++i) {
      if (i < count)
        row.push_back(actionAt(Kind::Forward, request, w, i));
      if (i >= warmUp)
        row.push_back(actionAt(Kind::Backward, request, w, i - warmUp));
    }
  }
  return plan;
}

constexpr const char *kInterleavedSource =
    "Narayanan et al., SC'21, section 2.2";

constexpr BubbleFormula kInterleavedBubbles[] = {
    {"(D-1)/(vN+D-1)", "N >= D or v = 1", kInterleavedSource,
     [](const Sizes &s) {
       return s.microBatches >= s.workers || s.chunks() == 1;
     },
     [](const Sizes &s) {
       return ratio(s.workers - 1, s.chunks() * s.microBatches);
     }}};

/// The number of micro-batches in a group.
int64_t groupOf(const Sizes &s) {
  return s.microBatches / std::max<int64_t>(1, s.microBatches / s.workers);
}

constexpr PeakFormula kInterleavedPeaks[] = {
    {"1 to min(N, D)", "v = 1", kTable2,
     [](const Sizes &s) { return s.chunks() == 1; }, upToWorkers},
    {"(v-1)G+1 to min(vN, (v-1)G+2D-1), G = N/max(1, floor(N/D))", "v > 1",
     kInterleavedSource, [](const Sizes &s) { return s.chunks() > 1; },
     [](const Sizes &s) {
       int64_t ahead = (s.chunks() - 1) * groupOf(s);
       return std::pair(ahead + 1, std::min(s.chunks() * s.microBatches,
                                            ahead + 2 * s.workers - 1));
     }}};

} // namespace

const Scheme kInterleaved1F1B = {
    "interleaved-1f1b",
    "1f1b over several stages a worker: a shorter ramp, more messages",
    "any D >= 1, S = vD, N <= D or a multiple of floor(N/D)",
    {},
    checkInterleaved,
    placeInterleaved,
    makeInterleaved,
    kInterleavedBubbles,
    kInterleavedPeaks,
    /*note=*/nullptr,
    /*stagesPerWorker=*/2};

} // namespace chimera::schedule
