//===- StatedTimes.cpp - Times that a user states -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/StatedTimes.h"

#include <algorithm>
#include <numeric>

namespace chimera::schedule {

/// The product, or INT64_MAX if it is too large.
static int64_t multiply(int64_t time, int64_t factor) {
  int64_t product = 0;
  return __builtin_mul_overflow(time, factor, &product) ? INT64_MAX : product;
}

static MessageTime &onTheWay(Link &link) { return link; }
static MessageTime &sending(Link &link) { return link.send; }
static MessageTime &receiving(Link &link) { return link.receive; }

std::span<const MessageOption> messageOptions() {
  static constexpr MessageOption all[] = {
      {"p2p", "Time of a message on its way to another worker", onTheWay,
       &MessageTime::alpha},
      {"p2p-per-mib", "Additional time of a message for each MiB", onTheWay,
       &MessageTime::beta},
      {"send", "Time for which sending a message occupies the worker", sending,
       &MessageTime::alpha},
      {"send-per-mib", "Additional time of sending for each MiB", sending,
       &MessageTime::beta},
      {"receive", "Time for which receiving a message occupies the worker",
       receiving, &MessageTime::alpha},
      {"receive-per-mib", "Additional time of receiving for each MiB",
       receiving, &MessageTime::beta},
  };
  return all;
}

const MessageOption *findMessageOption(std::string_view name) {
  auto found = std::ranges::find(messageOptions(), name, &MessageOption::name);
  return found == messageOptions().end() ? nullptr : &*found;
}

int64_t StatedTimes::wholeBackward() const {
  return backward > 0 ? backward : multiply(2, forward);
}

int64_t StatedTimes::timeOfStage(const Problem &problem, int64_t time,
                                 int64_t factor) const {
  int64_t ticks = multiply(time, factor);
  if (scope != Scope::Worker)
    return ticks;
  // The division has no remainder, because `factor` is a multiple of `least` in
  // `refinement`.
  auto stages = static_cast<int64_t>(problem.stages.size());
  int64_t common = std::gcd<int64_t>(stages, problem.workers);
  return multiply(ticks / (stages / common), problem.workers / common);
}

int64_t StatedTimes::refinement(const Problem &problem) const {
  if (areOwn())
    return 1;
  auto stages = static_cast<int64_t>(problem.stages.size());
  const int64_t least =
      scope == Scope::Worker
          ? stages / std::gcd<int64_t>(stages, problem.workers)
          : 1;
  if (perUnit == 1 && scope != Scope::Worker)
    return 1;
  int64_t factor = 1;
  auto cutInto = [&](int64_t parts, int64_t time) {
    // Refine only by the largest power of two in `parts`, so that results
    // remain finite decimals. A third of a decimal may have infinitely many
    // digits.
    parts &= -parts;
    factor = std::max(
        factor, parts / std::gcd(parts, timeOfStage(problem, time, least)));
  };
  int64_t parts = maxParts(problem.pipelines);
  bool isSplit = problem.splits.any();
  bool halves = isSplit && weightGradient == 0;
  cutInto(halves ? 2 * parts : parts, wholeBackward());
  if (isSplit && weightGradient > 0)
    cutInto(parts, weightGradient);
  if (!problem.recompute.empty())
    cutInto(parts, forward);
  int64_t refined = 0;
  return __builtin_mul_overflow(perUnit * least, factor, &refined)
             ? least
             : least * factor;
}

void StatedTimes::setStages(Problem &problem, int64_t factor) const {
  if (areOwn()) {
    for (StageCost &cost : problem.stages) {
      for (int64_t *time :
           {&cost.forward, &cost.backward, &cost.inputGradient,
            &cost.weightGradient, &cost.recompute, &cost.update})
        *time = multiply(*time, factor * perUnit);
      for (std::optional<int64_t> *time :
           {&cost.pairedForward, &cost.joinedWeightGradient})
        if (*time)
          *time = multiply(**time, factor * perUnit);
    }
    return;
  }
  if (areDefault()) {
    // Every action takes one unit. Each part of a backward also takes one unit.
    int64_t parts = maxParts(problem.pipelines);
    for (StageCost &cost : problem.stages)
      cost = {1, parts, parts, parts, parts, 0};
    return;
  }
  auto ofStage = [&](int64_t time) {
    return timeOfStage(problem, time, factor);
  };
  int64_t whole = ofStage(wholeBackward());
  int64_t second = weightGradient > 0 ? ofStage(weightGradient)
                                      : std::max<int64_t>(1, whole / 2);
  int64_t first = ofStage(forward);
  for (StageCost &cost : problem.stages)
    cost = {first,  whole, std::max<int64_t>(1, whole - second),
            second, first, ofStage(update)};
}

void StatedTimes::setLinks(LinkClass &links, int64_t factor,
                           int64_t ownTicks) const {
  Link &link = links.link;
  std::vector<MessageTime *> all = {&onTheWay(link), &sending(link),
                                    &receiving(link), &links.allReduceOverhead};
  if (links.allReduceMessage)
    all.push_back(&*links.allReduceMessage);
  for (MessageTime *message : all) {
    message->alpha = multiply(message->alpha, factor * perUnit);
    message->beta = multiply(message->beta, factor * perUnit);
  }
  for (auto [option, ticks] : messages) {
    MessageTime &message = option->message(link);
    message.*option->time = multiply(multiply(ticks, factor), ownTicks);
    message.betaBytes = kMebibyte;
  }
}

int64_t StatedTimes::apply(Problem &problem, int64_t ownTicks) const {
  const int64_t factor = refinement(problem);
  setStages(problem, factor);
  if (!areOwn())
    static_cast<LinkClass &>(problem) = {}, problem.node.reset();
  for (LinkClass *links : problem.classes())
    setLinks(*links, factor, ownTicks);
  return factor * perUnit * ownTicks;
}

} // namespace chimera::schedule
