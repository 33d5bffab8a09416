//===- Problem.cpp - The scheduling problem -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Problem.h"

#include "compiler/schedule/model/AllReduceTime.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

namespace chimera::schedule {

int32_t Problem::microBatches() const {
  size_t count = 0;
  for (const Pipeline &pipeline : pipelines)
    count += pipeline.microBatches.size();
  return static_cast<int32_t>(count);
}

int32_t maxParts(const std::vector<Pipeline> &pipelines) {
  int32_t parts = 1;
  for (const Pipeline &pipeline : pipelines)
    parts = std::max(parts, pipeline.backwardParts);
  return parts;
}

bool Splits::any() const {
  return cells.empty() ? uniform
                       : std::ranges::find(cells, true) != cells.end();
}

bool Splits::anyWhole() const {
  return cells.empty() ? !uniform
                       : std::ranges::find(cells, false) != cells.end();
}

Splits Splits::simplified() const {
  if (any() && anyWhole())
    return *this;
  return any();
}

/// The limit of the sum of all times, and of the sum of all bytes. Below this
/// limit, no sum that later code computes can overflow.
static constexpr int64_t kMost = int64_t{1} << 62;

/// The time of `bytes` without alpha, at most kMost.
static int64_t timeOfBytes(const MessageTime &of, int64_t bytes) {
  if (of.beta == 0)
    return 0;
  __extension__ using Wide = __int128;
  Wide product = static_cast<Wide>(bytes) * of.beta;
  Wide time = (product + of.betaBytes - 1) / of.betaBytes;
  return time < kMost ? static_cast<int64_t>(time) : kMost;
}

const LinkClass &Workload::linksOf(std::span<const int32_t> group,
                                   bool allCopies) const {
  if (!node)
    return *this;
  const int64_t devices = node->devices;
  const auto [least, most] = std::ranges::minmax(group);
  auto isOnOneNode = [&](int64_t first, int64_t last) {
    return first / devices == last / devices;
  };
  if (allCopies)
    return isOnOneNode(least, most + int64_t{width - 1} * workers) ? node->links
                                                                   : *this;
  // Copy number `period` has its node boundaries between the same workers as
  // copy 0. So only the copies before it must be checked.
  const int64_t period = devices / std::gcd(devices, int64_t{workers});
  for (int64_t copy = 0; copy < std::min<int64_t>(width, period); ++copy)
    if (!isOnOneNode(least + copy * workers, most + copy * workers))
      return *this;
  return node->links;
}

int64_t Workload::messageTime(const MessageTime &of, int32_t stage) const {
  return of.alpha + timeOfBytes(of, bytesOf(stage).boundary);
}

int64_t Workload::messageTime(const MessageTime &of, int32_t stage,
                              const Action &action) const {
  int64_t bytes = bytesOf(stage).boundary;
  if (action.parts > 1)
    bytes = sizeOfPart(bytes, action.part, action.parts);
  return of.alpha + timeOfBytes(of, bytes * action.microBatches);
}

/// True if `times` times the sum of `terms` is below kMost.
static bool fits(std::span<const int64_t> terms, int64_t times) {
  int64_t sum = 0;
  for (int64_t term : terms)
    if (__builtin_add_overflow(sum, term, &sum))
      return false;
  return !__builtin_mul_overflow(sum, times, &sum) && sum < kMost;
}

/// The number of micro-batches in all steps of the problem.
static int64_t allMicroBatches(const Problem &problem) {
  return int64_t{problem.microBatches()} * problem.steps;
}

/// True if the sum of all times is below kMost, with a message after each
/// action. Then no makespan can overflow.
static bool timesFit(const Problem &problem) {
  int64_t parts = maxParts(problem.pipelines);
  std::vector<int64_t> times;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const StageCost &cost = problem.stages[s];
    int64_t bytes = problem.bytesOf(static_cast<int32_t>(s)).boundary;
    times.insert(times.end(), {std::max(cost.forward, cost.pairedForwardTime()),
                               cost.backward, cost.inputGradient,
                               std::max(cost.weightGradient,
                                        cost.joinedWeightGradientTime()),
                               cost.recompute, cost.update});
    if (stepsOverlap(problem.updates)) {
      int64_t gradient = problem.bytesOf(static_cast<int32_t>(s)).gradient();
      int64_t buckets = bucketsOf(gradient, problem.bucketBytes).count;
      for (const LinkClass *links : problem.classes())
        times.push_back(allReduceTime(*links, problem.allReduceAlgorithm,
                                      problem.width, gradient, buckets));
    }
    for (const LinkClass *links : problem.classes())
      for (const MessageTime &of : links->link.times()) {
        times.insert(times.end(), 4 * parts, of.alpha);
        // The message of each part may be rounded up by less than a tick. The
        // last term (4 * parts) is at least the sum of these roundings.
        times.insert(times.end(), 4, timeOfBytes(of, bytes));
        times.push_back(4 * parts);
      }
  }
  return fits(times, allMicroBatches(problem));
}

/// True if all replicas, all versions of their weights and all activations sum
/// to less than kMost.
static bool bytesFit(const Problem &problem) {
  std::vector<int64_t> sizes;
  for (const StageBytes &bytes : problem.bytes)
    sizes.insert(sizes.end(), {bytes.weights, bytes.weights, bytes.optimizer,
                               std::max(bytes.stash, bytes.weightStash),
                               bytes.boundary, bytes.boundary});
  // The number of versions of a stage's weights is at most 2 or the number of
  // stages, whichever is larger.
  return fits(sizes, allMicroBatches(problem) + 2 +
                         static_cast<int64_t>(problem.pipelines.size()) +
                         static_cast<int64_t>(problem.stages.size()));
}

/// The error in a message time, or an empty string. The error text calls the
/// time `what`.
static std::string checkTime(const MessageTime &of, const std::string &what) {
  if (of.alpha < 0)
    return "expected " + what + " of at least 0, got " +
           std::to_string(of.alpha);
  if (of.beta < 0 || of.betaBytes < 1)
    return "expected " + what + " of at least 0 for at least 1 byte, got " +
           std::to_string(of.beta) + " for " + std::to_string(of.betaBytes);
  return {};
}

/// The first error in the times of one class of links.
static std::string checkLinks(const LinkClass &links) {
  const std::pair<MessageTime, const char *> times[] = {
      {links.allReduceMessage.value_or(MessageTime()),
       "a message time of all-reduces"},
      {links.allReduceOverhead, "a fixed time of all-reduces"},
      {links.link, "a message latency"},
      {links.link.send, "a time for sending a message"},
      {links.link.receive, "a time for receiving a message"}};
  for (const auto &[time, what] : times)
    if (std::string error = checkTime(time, what); !error.empty())
      return error;
  return {};
}

/// The first error in width, nodes, links, sizes and caps.
static std::string checkSizes(const Problem &problem) {
  if (problem.width < 1)
    return "expected a data-parallel width of at least 1, got " +
           std::to_string(problem.width);
  if (problem.node && problem.node->devices < 1)
    return "expected nodes of at least 1 device, got " +
           std::to_string(problem.node->devices);
  if (problem.node && problem.node->cores < 0)
    return "expected cores of a node of at least 0, got " +
           std::to_string(problem.node->cores);
  for (const LinkClass *links : problem.classes())
    if (std::string error = checkLinks(*links); !error.empty())
      return error;
  if (!problem.bytes.empty() && problem.bytes.size() != problem.stages.size())
    return "expected the bytes of all " +
           std::to_string(problem.stages.size()) + " stages or of none, got " +
           std::to_string(problem.bytes.size());
  for (size_t s = 0; s < problem.bytes.size(); ++s) {
    const StageBytes &bytes = problem.bytes[s];
    int64_t least = std::min({bytes.weights, bytes.optimizer, bytes.stash,
                              bytes.weightStash, bytes.boundary});
    if (least < 0)
      return "expected bytes of at least 0 on stage " + std::to_string(s) +
             ", got " + std::to_string(least);
    if (bytes.parameterCopy < 0 || bytes.parameterCopy > bytes.weights)
      return "expected a copy of 0 to " + std::to_string(bytes.weights) +
             " bytes, the weights of stage " + std::to_string(s) + ", got " +
             std::to_string(bytes.parameterCopy);
  }
  if (int64_t most =
          std::min(problem.bytesOf(0).gradient(),
                   problem.bytesOf(std::ssize(problem.stages) - 1).gradient());
      problem.tiedBytes < 0 || problem.tiedBytes > most)
    return "expected tied bytes of at least 0 and at most the " +
           std::to_string(most) + " of the first and the last stage, got " +
           std::to_string(problem.tiedBytes);
  if (problem.bucketBytes != 0 && problem.bucketBytes < 8)
    return "expected buckets of at least 8 bytes, or 0 for none, got " +
           std::to_string(problem.bucketBytes);
  size_t workers = static_cast<size_t>(problem.workers);
  if (!problem.memoryCaps.empty() && problem.memoryCaps.size() != workers)
    return "expected memory caps for all " + std::to_string(workers) +
           " workers or for none, got " +
           std::to_string(problem.memoryCaps.size());
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w)
    if (problem.memoryCaps[w] < 0)
      return "expected a memory cap of at least 0 on worker " +
             std::to_string(w) + ", got " +
             std::to_string(problem.memoryCaps[w]);
  return {};
}

/// The first error in the costs, in the number of parts of backwards, or in the
/// recomputation of stages.
static std::string checkCosts(const Problem &problem) {
  int32_t parts = 1;
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    int32_t own = problem.pipelines[p].backwardParts;
    if (own < 1 || own > UINT8_MAX)
      return "expected backwards of pipeline " + std::to_string(p) +
             " in 1 to " + std::to_string(UINT8_MAX) + " parts, got " +
             std::to_string(own);
    parts = std::max(parts, own);
  }
  if (!problem.recompute.empty() &&
      problem.recompute.size() != problem.stages.size())
    return "expected recomputation for all " +
           std::to_string(problem.stages.size()) + " stages or for none, got " +
           std::to_string(problem.recompute.size());
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const StageCost &cost = problem.stages[s];
    int64_t least =
        std::min({cost.forward, cost.backward, cost.inputGradient,
                  cost.weightGradient, cost.recompute, cost.pairedForwardTime(),
                  cost.joinedWeightGradientTime()});
    if (least < 1)
      return "expected costs of at least 1 on stage " + std::to_string(s) +
             ", got " + std::to_string(least);
    if (cost.update < 0)
      return "expected an update of at least 0 on stage " + std::to_string(s) +
             ", got " + std::to_string(cost.update);
    int64_t cut = std::numeric_limits<int64_t>::max();
    if (problem.splits.any())
      cut = std::min({cost.inputGradient, cost.weightGradient,
                      cost.joinedWeightGradientTime()});
    if (problem.splits.anyWhole())
      cut = std::min(cut, cost.backward);
    if (problem.recomputeOf(static_cast<int32_t>(s)) != Recompute::None)
      cut = std::min(cut, cost.recompute);
    if (cut < parts)
      return "expected costs of at least " + std::to_string(parts) +
             " on stage " + std::to_string(s) +
             ", because its backwards have " + std::to_string(parts) +
             " parts, got " + std::to_string(cut);
  }
  return {};
}

/// The first error in the micro-batches that the forwards of a pipeline cover.
static std::string checkCover(const Pipeline &pipeline,
                              const std::string &where) {
  size_t next = 0;
  for (int32_t count : pipeline.forwards) {
    if (count < 1 || count > UINT16_MAX)
      return "expected forwards of " + where + " over 1 to " +
             std::to_string(UINT16_MAX) + " micro-batches, got " +
             std::to_string(count);
    size_t first = next;
    next += count;
    if (next > pipeline.microBatches.size())
      break;
    for (size_t i = first + 1; i < next; ++i)
      if (pipeline.microBatches[i] != pipeline.microBatches[i - 1] + 1)
        return "expected each forward of " + where +
               " to cover consecutive micro-batches, got " +
               std::to_string(pipeline.microBatches[i - 1]) + " and " +
               std::to_string(pipeline.microBatches[i]);
  }
  if (!pipeline.forwards.empty() && next != pipeline.microBatches.size())
    return "expected the forwards of " + where + " to cover its " +
           std::to_string(pipeline.microBatches.size()) +
           " micro-batches, got " + std::to_string(next);
  return {};
}

/// The first error in the number of steps or in the requirements of steps that
/// overlap.
static std::string checkSteps(const Problem &problem) {
  if (!stepsOverlap(problem.updates)) {
    if (problem.steps != 1)
      return "expected one step if a flush ends it, got " +
             std::to_string(problem.steps);
    return {};
  }
  if (problem.steps < 2)
    return "expected at least 2 steps if they overlap, got " +
           std::to_string(problem.steps);
  if (allMicroBatches(problem) > INT32_MAX)
    return "expected less than 2^31 micro-batches over all steps, got " +
           std::to_string(allMicroBatches(problem));
  if (problem.pipelines.size() != 1)
    return "expected one pipeline if steps overlap, got " +
           std::to_string(problem.pipelines.size());
  const Pipeline &pipeline = problem.pipelines.front();
  if (!pipeline.forwards.empty() || pipeline.backwardParts != 1)
    return "expected forwards and backwards of one micro-batch if steps "
           "overlap";
  // Stage s runs S-1-s forwards before its body (Schedule::Body). All of these
  // forwards must be of the first step, so a step needs at least S-1
  // micro-batches.
  if (std::ssize(pipeline.microBatches) < std::ssize(problem.stages) - 1)
    return "expected at least " + std::to_string(problem.stages.size() - 1) +
           " micro-batches in a step, because the first stage runs that many "
           "forwards ahead, got " +
           std::to_string(pipeline.microBatches.size());
  for (int32_t w = 0; w < problem.workers; ++w)
    if (std::ranges::find(pipeline.workers, w) == pipeline.workers.end())
      return "expected a stage on each worker if steps overlap, got none on "
             "worker " +
             std::to_string(w);
  return {};
}

std::string check(const Problem &problem) {
  if (problem.workers < 1)
    return "expected at least one worker, got " +
           std::to_string(problem.workers);
  if (problem.stages.empty())
    return "expected at least one stage, got none";
  if (std::string error = checkSizes(problem); !error.empty())
    return error;
  if (std::string error = checkCosts(problem); !error.empty())
    return error;
  int32_t count = problem.microBatches();
  if (count < 1)
    return "expected at least one micro-batch, got none";
  if (std::string error = checkSteps(problem); !error.empty())
    return error;
  if (!timesFit(problem))
    return "expected times that sum to less than 2^62 over the step";
  if (!bytesFit(problem))
    return "expected bytes that sum to less than 2^62 over the step";
  std::vector<bool> taken(count, false);
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    const Pipeline &pipeline = problem.pipelines[p];
    std::string where = "pipeline " + std::to_string(p);
    if (pipeline.microBatches.empty())
      return "expected " + where + " to have micro-batches, got none";
    if (pipeline.workers.size() != problem.stages.size())
      return "expected " + where + " to place " +
             std::to_string(problem.stages.size()) + " stages, got " +
             std::to_string(pipeline.workers.size());
    for (int32_t worker : pipeline.workers)
      if (worker < 0 || worker >= problem.workers)
        return "expected " + where + " to use workers below " +
               std::to_string(problem.workers) + ", got " +
               std::to_string(worker);
    for (int32_t m : pipeline.microBatches) {
      if (m < 0 || m >= count)
        return "expected " + where + " to have micro-batches below " +
               std::to_string(count) + ", got " + std::to_string(m);
      if (taken[m])
        return "expected each micro-batch in one pipeline, got micro-batch " +
               std::to_string(m) + " twice, again in " + where;
      taken[m] = true;
    }
    if (std::string error = checkCover(pipeline, where); !error.empty())
      return error;
  }
  return {};
}

} // namespace chimera::schedule
