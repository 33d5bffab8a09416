//===- Windows.cpp - How many receives are posted ahead -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Windows.h"

#include <algorithm>
#include <map>
#include <optional>

namespace chimera::schedule {

namespace {

/// A message between two workers: the action that makes it, and over the
/// boundary behind which stage it goes.
struct Sent {
  int64_t id;
  int32_t stage;
  int32_t peer; ///< the other worker
};

bool isGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::InputGradient;
}

/// What passes between `stage` and `other`, another worker's stage beside it;
/// none where there is no such stage or it is on the same worker.
std::optional<Sent> between(const Problem &problem, const Action &action,
                            int64_t id, int32_t other) {
  const std::vector<int32_t> &place =
      problem.pipelines[action.pipeline].workers;
  if (other < 0 || other >= std::ssize(place) ||
      place[other] == place[action.stage])
    return std::nullopt;
  return Sent{id, std::min(other, action.stage), place[other]};
}

/// The message that `action` makes.
std::optional<Sent> sentBy(const Problem &problem, const ActionIds &ids,
                           const Action &action) {
  if (action.kind == Kind::Forward)
    return between(problem, action, ids.idOf(action), action.stage + 1);
  if (isGradient(action.kind))
    return between(problem, action, ids.idOf(action), action.stage - 1);
  return std::nullopt;
}

/// The message that `action` waits for.
std::optional<Sent> awaitedBy(const Problem &problem, const ActionIds &ids,
                              const Action &action) {
  bool fused = problem.recomputeOf(action.stage) == Recompute::Fused;
  std::optional<Sent> sent;
  if (action.kind == Kind::Forward) {
    sent = between(problem, action, ids.idOf(action), action.stage - 1);
    if (sent)
      sent->id = ids.onward(sent->id, -1);
  } else if (fused ? action.kind == Kind::Recompute : isGradient(action.kind)) {
    int64_t own = ids.at(ActionIds::kBackward, action.stage, action.microBatch,
                         action.part);
    sent = between(problem, action, own, action.stage + 1);
    if (sent)
      sent->id = ids.onward(sent->id, 1);
  }
  return sent;
}

} // namespace

Windows::Windows(const Problem &problem, const Schedule &schedule)
    : problem(problem), schedule(schedule) {
  ActionIds ids(problem);
  numbers.channel.assign(ids.count(), -1);
  numbers.number.assign(ids.count(), -1);
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::map<int32_t, int32_t> channelTo;
    for (const Action &action : schedule.workers[w]) {
      std::optional<Sent> sent = sentBy(problem, ids, action);
      if (!sent)
        continue;
      auto [known, isNew] = channelTo.try_emplace(
          sent->peer, static_cast<int32_t>(channels.size()));
      if (isNew)
        channels.push_back({sent->peer});
      Channel &channel = channels[known->second];
      numbers.channel[sent->id] = known->second;
      numbers.number[sent->id] = channel.messages++;
      int64_t bytes = problem.bytesOf(sent->stage).boundary;
      bytes = action.parts > 1 ? share(bytes, action.parts - 1, action.parts)
                               : bytes * action.microBatches;
      channel.bytes = std::max(channel.bytes, bytes);
    }
  }
  std::vector<int32_t> received(channels.size(), 0);
  for (const std::vector<Action> &order : schedule.workers)
    for (const Action &action : order)
      if (std::optional<Sent> sent = awaitedBy(problem, ids, action)) {
        int32_t c = numbers.channel[sent->id];
        channels[c].needed = std::max(
            channels[c].needed, numbers.number[sent->id] - received[c]++ + 1);
      }
}

int32_t Windows::needed() const {
  int32_t most = 1;
  for (const Channel &channel : channels)
    most = std::max(most, channel.needed);
  return most;
}

int32_t Windows::windowOf(const Channel &channel, int32_t window,
                          bool widened) const {
  return widened ? std::max(window, channel.needed) : window;
}

Timing Windows::simulate(int32_t window, bool widened) const {
  MessageNumbers limited = numbers;
  for (const Channel &channel : channels)
    limited.windows.push_back(windowOf(channel, window, widened));
  return schedule::simulate(problem, schedule, limited);
}

int32_t Windows::choose(int32_t most) const {
  if (problem.link.alpha == 0 && problem.link.beta == 0)
    return 1;
  int64_t least = simulate(most, /*widened=*/true).makespan;
  auto suffices = [&](int32_t window) {
    return simulate(window, /*widened=*/true).makespan == least;
  };
  // A window of all messages delays none.
  int32_t enough = 1, below = 0;
  while (!suffices(enough)) {
    below = enough;
    enough = enough > most / 2 ? most : 2 * enough;
  }
  while (below + 1 < enough) {
    int32_t middle = below + (enough - below) / 2;
    (suffices(middle) ? enough : below) = middle;
  }
  return enough;
}

std::vector<int64_t> Windows::bytes(int32_t window, bool widened) const {
  std::vector<int64_t> bytes(schedule.workers.size(), 0);
  for (const Channel &channel : channels)
    bytes[channel.worker] +=
        std::min(windowOf(channel, window, widened), channel.messages) *
        channel.bytes;
  return bytes;
}

} // namespace chimera::schedule
