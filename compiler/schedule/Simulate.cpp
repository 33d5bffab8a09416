//===- Simulate.cpp - When every action runs -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Memory.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// Fills what follows from the starts, all but the critical path; what messages
/// occupy is not counted.
void summarize(const Problem &problem, const Schedule &schedule, bool unitCosts,
               Timing &timing) {
  size_t workers = schedule.workers.size();
  timing.busy.assign(workers, 0);
  timing.span.assign(workers, 0);
  timing.occupied.resize(workers, 0);
  for (size_t w = 0; w < workers; ++w) {
    const std::vector<Action> &order = schedule.workers[w];
    const std::vector<int64_t> &starts = timing.starts[w];
    int64_t end = 0, busy = 0;
    size_t ran = 0;
    for (; ran < order.size() && starts[ran] >= 0; ++ran) {
      const Action &action = order[ran];
      int64_t cost = unitCosts ? 1 : problem.cost(action);
      busy += cost;
      end = starts[ran] + cost;
    }
    timing.busy[w] = busy;
    if (ran > 0)
      timing.span[w] = end - starts.front();
    timing.makespan = std::max(timing.makespan, end);
    MemoryPeak peak = memoryPeak(problem, std::span(order).first(ran),
                                 static_cast<int32_t>(w));
    timing.peakActivations.push_back(peak.activations);
    timing.peakBytes.push_back(peak.bytes);
  }
  for (int64_t busy : timing.busy)
    timing.idle.push_back(timing.makespan - busy);
}

/// Runs the order to its end: a stack holds the workers that can go on.
class Simulation {
public:
  /// `numbers` are null where every receive is posted in time.
  Simulation(const Problem &problem, const Schedule &schedule,
             const MessageNumbers *numbers = nullptr)
      : problem(problem), schedule(schedule), numbers(numbers), ids(problem),
        stages(static_cast<int32_t>(problem.stages.size())),
        done(ids.count(), -1), next(schedule.workers.size(), 0),
        waitsFor(schedule.workers.size(), -1), free(schedule.workers.size(), 0),
        begins(schedule.workers.size(), 0) {
    for (int32_t s = 0; s < stages; ++s)
      messages.push_back(messageOf(
          [&](const MessageTime &of) { return problem.transfer(of, s); }));
    if (numbers)
      received.resize(numbers->windows.size());
  }

  Timing run() {
    Timing timing;
    size_t workers = schedule.workers.size();
    timing.starts.resize(workers);
    timing.occupied.assign(workers, 0);
    for (size_t w = 0; w < workers; ++w)
      timing.starts[w].assign(schedule.workers[w].size(), -1);
    for (size_t w = workers; w-- > 0;)
      ready.push_back(static_cast<int32_t>(w));
    while (!ready.empty()) {
      int32_t worker = ready.back();
      ready.pop_back();
      advance(worker, timing.starts[worker], timing.occupied[worker]);
    }
    for (size_t w = 0; w < workers; ++w)
      timing.complete &= next[w] == schedule.workers[w].size();
    return timing;
  }

  /// Counts as part of a worker's span what occupies it before its first action
  /// and behind its last.
  void extendSpans(Timing &timing) const {
    for (size_t w = 0; w < free.size(); ++w)
      if (next[w] > 0)
        timing.span[w] = free[w] - begins[w];
  }

  /// Walks back from the action that ends last, over whatever ended when the
  /// action at hand could start.
  std::vector<Turn> criticalPath(const Timing &timing) const {
    std::vector<Turn> path;
    Turn turn{-1, -1};
    for (size_t w = 0; w < free.size(); ++w)
      if (!schedule.workers[w].empty() &&
          timing.starts[w].back() + problem.cost(schedule.workers[w].back()) ==
              timing.makespan)
        turn = {static_cast<int32_t>(w),
                static_cast<int32_t>(schedule.workers[w].size()) - 1};
    while (turn.index >= 0) {
      path.push_back(turn);
      turn = before(timing, turn);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

private:
  /// Times of a message.
  struct Message {
    int64_t send = 0;    ///< occupies its worker behind the action
    int64_t delay = 0;   ///< from the action's end until it is there
    int64_t receive = 0; ///< occupies the other before its action
    bool isAwaited = false;
  };

  template <typename Time> Message messageOf(Time time) const {
    int64_t send = time(problem.link.send);
    return {send, send + time(problem.link), time(problem.link.receive), true};
  }

  /// The message over the boundary behind `stage` for what `action` covers.
  Message messageOver(int32_t stage, const Action &action) const {
    if (action.microBatches == 1 && action.parts == 1)
      return messages[stage];
    return messageOf([&](const MessageTime &of) {
      return problem.transfer(of, stage, action);
    });
  }

  /// How long what `action` sends occupies its worker.
  int64_t sendTime(const Action &action) const {
    const std::vector<int32_t> &place =
        problem.pipelines[action.pipeline].workers;
    int32_t s = action.stage, boundary = s - 1;
    switch (action.kind) {
    case Kind::Forward:
      boundary = s;
      break;
    case Kind::Backward:
    case Kind::InputGradient:
      break;
    case Kind::WeightGradient:
    case Kind::Recompute:
      return 0;
    }
    if (boundary < 0 || boundary + 1 == stages ||
        place[boundary] == place[boundary + 1])
      return 0;
    return messageOver(boundary, action).send;
  }

  /// Calls `visit(id, message)` for each action that `action`, number `own`, on
  /// `worker` depends on, and the message that it comes with. Stops, and gives
  /// false, where a visit does. The recompute of a backward stands before it on
  /// its worker, so the order sees to that; a fused one receives the gradient.
  /// The verifier has a reading of the dependencies of its own, on purpose.
  template <typename Visit>
  bool forEachNeed(const Action &action, int64_t own, int32_t worker,
                   Visit visit) const {
    using Ids = ActionIds;
    const std::vector<int32_t> &place =
        problem.pipelines[action.pipeline].workers;
    int32_t s = action.stage, m = action.microBatch, part = action.part;
    bool fused = problem.recomputeOf(s) == Recompute::Fused;
    // Over the boundary behind `stage`, from the stage on `from`.
    auto message = [&](int32_t stage, int32_t from) {
      return from == worker ? Message() : messageOver(stage, action);
    };
    auto gradient = [&](int64_t backward) {
      if (s + 1 == stages)
        return true;
      Message arriving = message(s, place[s + 1]);
      if (fused && action.kind != Kind::Recompute)
        arriving.receive = 0, arriving.isAwaited = false;
      return visit(ids.onward(backward, 1), arriving);
    };
    switch (action.kind) {
    case Kind::Forward:
      return s == 0 || visit(ids.onward(own, -1), message(s - 1, place[s - 1]));
    case Kind::Backward:
    case Kind::InputGradient:
      return visit(ids.at(Ids::kForward, s, m), Message()) && gradient(own);
    case Kind::WeightGradient:
      return visit(ids.at(Ids::kBackward, s, m, part), Message());
    case Kind::Recompute:
      return visit(ids.at(Ids::kForward, s, m), Message()) &&
             (!fused || gradient(ids.at(Ids::kBackward, s, m, part)));
    }
    return true;
  }

  /// When the receive of what the action `id` makes is posted, -1 if it has to
  /// wait for its own worker.
  int64_t postedAt(int64_t id) const {
    int32_t channel = numbers->channel[id];
    int64_t before = numbers->number[id] - numbers->windows[channel];
    if (before < 0)
      return 0;
    const std::vector<int64_t> &times = received[channel];
    return before < std::ssize(times) ? times[before] : -1;
  }

  /// Runs what can be run on `worker`.
  void advance(int32_t worker, std::vector<int64_t> &starts,
               int64_t &occupied) {
    std::span<const Action> order = schedule.workers[worker];
    size_t i = next[worker];
    int64_t now = free[worker];
    for (; i < order.size(); ++i) {
      const Action &action = order[i];
      int64_t start = now, receive = 0, awaited = -1;
      int64_t id = ids.idOf(action);
      auto isDone = [&](int64_t need, const Message &message) {
        int64_t end = done[need];
        start = std::max(start, end + message.delay);
        receive += message.receive;
        if (end < 0)
          waitsFor[worker] = need;
        if (!numbers || !message.isAwaited || end < 0)
          return end >= 0;
        awaited = need;
        int64_t posted = postedAt(need);
        start = std::max(start, posted + message.delay - message.send);
        return posted >= 0;
      };
      if (!forEachNeed(action, id, worker, isDone))
        break;
      if (i == 0)
        begins[worker] = start;
      starts[i] = start + receive;
      if (awaited >= 0)
        received[numbers->channel[awaited]].push_back(starts[i]);
      done[id] = starts[i] + problem.cost(action);
      int64_t send = sendTime(action);
      now = done[id] + send;
      occupied += receive + send;
      wake(action, id);
    }
    next[worker] = i;
    free[worker] = now;
  }

  /// Looks again at the worker that may wait for `action`.
  void wake(const Action &action, int64_t id) {
    const std::vector<int32_t> &place =
        problem.pipelines[action.pipeline].workers;
    int32_t stage = action.stage;
    if (action.kind == Kind::Forward)
      ++stage;
    else if (action.kind == Kind::Backward ||
             action.kind == Kind::InputGradient)
      --stage;
    else
      return;
    if (stage >= 0 && stage < stages && waitsFor[place[stage]] == id)
      ready.push_back(place[stage]);
  }

  /// What ended, or arrived, when the action at `turn` started.
  Turn before(const Timing &timing, const Turn &turn) const {
    const std::vector<Action> &order = schedule.workers[turn.worker];
    const Action &action = order[turn.index];
    int64_t id = ids.idOf(action);
    // When it, or what it receives, began.
    int64_t start = timing.starts[turn.worker][turn.index];
    forEachNeed(action, id, turn.worker, [&](int64_t, const Message &message) {
      start -= message.receive;
      return true;
    });
    Turn found{turn.worker, -1};
    if (turn.index > 0) {
      const Action &last = order[turn.index - 1];
      if (timing.starts[turn.worker][turn.index - 1] + problem.cost(last) +
              sendTime(last) ==
          start)
        return {turn.worker, turn.index - 1};
    }
    auto isNone = [&](int64_t id, const Message &message) {
      if (done[id] + message.delay != start)
        return true;
      found = turnOf(timing, id);
      return false;
    };
    forEachNeed(action, id, turn.worker, isNone);
    return found;
  }

  /// Where the action `id` stands. Starts ascend on a worker.
  Turn turnOf(const Timing &timing, int64_t id) const {
    Action action = ids.action(id);
    int32_t worker = problem.pipelines[action.pipeline].workers[action.stage];
    const std::vector<int64_t> &starts = timing.starts[worker];
    auto at = std::lower_bound(starts.begin(), starts.end(),
                               done[id] - problem.cost(action));
    return {worker, static_cast<int32_t>(at - starts.begin())};
  }

  const Problem &problem;
  const Schedule &schedule;
  const MessageNumbers *numbers;
  ActionIds ids;
  int32_t stages;
  /// When the messages of each channel were received, in that order.
  std::vector<std::vector<int64_t>> received;
  /// For one micro-batch, by boundary.
  std::vector<Message> messages;
  /// End of each action, -1 before it ran.
  std::vector<int64_t> done;
  std::vector<size_t> next;
  /// The action that held each worker up last.
  std::vector<int64_t> waitsFor;
  std::vector<int64_t> free;
  /// When each worker's first action began, or what it receives.
  std::vector<int64_t> begins;
  std::vector<int32_t> ready;
};

} // namespace

int64_t Timing::load() const {
  return busy.empty() ? 0 : *std::max_element(busy.begin(), busy.end());
}

int64_t Timing::flushBubble() const { return makespan - load(); }

int64_t Timing::internalBubble() const {
  return span.empty() ? 0
                      : *std::max_element(span.begin(), span.end()) - load();
}

double Timing::bubbleRatio() const {
  int64_t total = 0;
  for (int64_t time : idle)
    total += time;
  if (makespan == 0 || idle.empty())
    return 0;
  return static_cast<double>(total) /
         (static_cast<double>(makespan) * static_cast<double>(idle.size()));
}

Timing simulate(const Problem &problem, const Schedule &schedule) {
  Simulation simulation(problem, schedule);
  Timing timing = simulation.run();
  summarize(problem, schedule, /*unitCosts=*/false, timing);
  simulation.extendSpans(timing);
  if (timing.complete)
    timing.criticalPath = simulation.criticalPath(timing);
  return timing;
}

Timing simulate(const Problem &problem, const Schedule &schedule,
                const MessageNumbers &numbers) {
  Simulation simulation(problem, schedule, &numbers);
  Timing timing = simulation.run();
  summarize(problem, schedule, /*unitCosts=*/false, timing);
  simulation.extendSpans(timing);
  return timing;
}

Timing slotTiming(const Problem &problem, const Schedule &schedule) {
  Timing timing;
  timing.starts = schedule.slots;
  summarize(problem, schedule, /*unitCosts=*/true, timing);
  return timing;
}

} // namespace chimera::schedule
