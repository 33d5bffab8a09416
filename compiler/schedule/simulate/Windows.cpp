//===- Windows.cpp - Windows of receives ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Windows.h"

#include "compiler/schedule/simulate/ActionRules.h"

#include <algorithm>
#include <map>

namespace chimera::schedule {

Windows::Windows(const Problem &problem, const Schedule &schedule)
    : problem(problem), schedule(schedule) {
  ActionRules rules(problem);
  const int64_t ids = rules.actionIds().count();
  numbers.channel.assign(ids, -1);
  numbers.number.assign(ids, -1);
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::map<int32_t, int32_t> channelTo;
    for (const Action &action : schedule.workers[w]) {
      std::optional<Message> sent = rules.sentBy(action);
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
      bytes = action.parts > 1
                  ? sizeOfPart(bytes, action.parts - 1, action.parts)
                  : bytes * action.microBatches;
      channel.bytes = std::max(channel.bytes, bytes);
    }
  }
  std::vector<int32_t> received(channels.size(), 0);
  for (const std::vector<Action> &order : schedule.workers)
    for (const Action &action : order)
      if (std::optional<Message> sent = rules.receivedBy(action)) {
        int32_t c = numbers.channel[sent->id];
        channels[c].needed = std::max(
            channels[c].needed, numbers.number[sent->id] - received[c]++ + 1);
      }
}

int32_t Windows::minWindow() const {
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
  ReceiveWindows limited = numbers;
  for (const Channel &channel : channels)
    limited.sizes.push_back(windowOf(channel, window, widened));
  return schedule::simulate(problem, schedule, {.windows = &limited});
}

int32_t Windows::fastestWindow(int32_t most) const {
  if (!problem.hasFlights())
    return 1;
  int64_t least = simulate(most, /*widened=*/true).makespan;
  auto suffices = [&](int32_t window) {
    return simulate(window, /*widened=*/true).makespan == least;
  };
  // The first loop ends at the latest when `enough` is `most`, because the
  // makespan with a window of `most` is `least`.
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

int32_t Windows::maxMessages() const {
  int32_t most = 1;
  for (const Channel &channel : channels)
    most = std::max(most, channel.messages);
  return most;
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
