//===- SharedCores.cpp - Workers that share cores -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/SharedCores.h"

#include "compiler/schedule/ActionRules.h"
#include "compiler/schedule/CoreGroups.h"
#include "compiler/schedule/Messages.h"
#include "compiler/schedule/SharedClock.h"
#include "compiler/schedule/UpdatesAfter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chimera::schedule {

namespace {

/// A discrete-event simulation of an order. If `syncAndUpdate` is given, it
/// simulates several steps, each with its all-reduces and updates.
class SharingSimulation {
public:
  SharingSimulation(const Problem &problem, const Schedule &schedule,
                    const MessageNumbers *numbers,
                    const SyncAndUpdateOrder *syncAndUpdate = nullptr,
                    int32_t steps = 1)
      : schedule(schedule), numbers(numbers), syncAndUpdate(syncAndUpdate),
        rules(problem), idsOfStep(rules.actionIds().count()),
        sent(idsOfStep * steps, kNever), workers(schedule.workers.size()),
        stepEnds(steps, std::vector<int64_t>(workers.size())),
        updates(updatesAfter(problem, schedule)),
        devices(problem.node->devices),
        allReducesBlock(problem.blockingAllReduces) {
    for (const CoreGroup &group : coreGroups(problem))
      clocks.emplace_back(group.cores);
    turns.resize(clocks.size());
    if (numbers)
      received.resize(numbers->windows.size());
    for (const std::vector<Action> &order : schedule.workers)
      timing.starts.emplace_back(order.size(), -1);
    timing.ends = timing.receiveBegins = timing.sendEnds = timing.updateEnds =
        timing.starts;
    if (syncAndUpdate)
      prepareAllReduces();
  }

  void run(std::span<const int64_t> begins) {
    for (size_t w = 0; w < workers.size(); ++w) {
      int64_t begin = begins.empty() ? 0 : begins[w];
      workers[w].free = begin;
      wake(static_cast<int32_t>(w), static_cast<double>(begin));
    }
    while (!events.empty()) {
      const Event event = events.top();
      events.pop();
      switch (event.of) {
      case Event::Of::Worker:
        continueWorker(event.who, event.time);
        break;
      case Event::Of::Clock:
        if (event.turn == turns[event.who]) // otherwise another work
                                            // began or ended meanwhile
          endWork(event.who, event.time);
        break;
      case Event::Of::AllReduce:
        endAllReduce(event.who, event.turn, event.time);
        break;
      }
    }
  }

  /// The timing of the first step.
  Timing takeTiming() {
    for (size_t w = 0; w < workers.size(); ++w) {
      const Worker &worker = workers[w];
      timing.complete &= worker.next == schedule.workers[w].size();
      timing.busy.push_back(worker.busy);
      timing.occupied.push_back(worker.occupied);
      timing.spans.push_back(worker.free - worker.begins);
      if (worker.next > 0)
        timing.makespan =
            std::max(timing.makespan, timing.ends[w][worker.next - 1]);
    }
    return std::move(timing);
  }

  /// When each worker ended each step, with its all-reduces and updates.
  std::vector<std::vector<int64_t>> takeStepEnds() {
    return std::move(stepEnds);
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// The activity of a worker.
  enum class Phase : uint8_t { Wait, Receive, Act, Send, Reduce, Update };

  struct Worker {
    int32_t step = 0;
    size_t next = 0;    ///< index of its next action
    size_t item = 0;    ///< index of its next SyncAndUpdateOrder::WaitOrUpdate
    size_t started = 0; ///< number of its all-reduces it has started
    Phase phase = Phase::Wait;
    int64_t waitsFor = -1; ///< id of the last action that it had to wait for
    /// The time at which its first action began, or the receive before that
    /// action. The time at which it ended its last action, with the send and
    /// the update after that action.
    int64_t begins = 0, free = 0;
    int64_t busy = 0, occupied = 0;
  };

  /// An all-reduce of one step.
  struct AllReduce {
    /// The number of notices that this all-reduce needs before it begins. Each
    /// of its workers gives two: one when it starts this all-reduce, and one
    /// when its previous all-reduce has ended.
    int32_t missingNotices = 0;
    bool hasEnded = false;
    std::vector<int32_t> waiting; ///< workers
  };

  /// An all-reduce that a worker starts after the action `after`.
  struct Started {
    int32_t after, allReduce;
  };

  /// An event: a worker may continue, a worker's work on a group of shared
  /// cores ends, or an all-reduce ends.
  struct Event {
    enum class Of : uint8_t { Worker, Clock, AllReduce };

    double time;
    int64_t number; ///< order of creation, for events at the same time
    Of of;
    int32_t who;
    int64_t turn; ///< Of a clock: the event is ignored if `turns` has another
                  ///< value by then. Of an all-reduce: its step.

    bool operator>(const Event &other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  /// `time` in whole ticks. Times are limited to 2^61 ticks, which are decades
  /// even if a tick is a nanosecond.
  static int64_t tick(double time) {
    return std::llround(std::min(time, 0x1p61));
  }

  void expect(double time, Event::Of of, int32_t who, int64_t turn = 0) {
    events.push({time, numberOfEvents++, of, who, turn});
  }

  void wake(int32_t worker, double time) {
    expect(time, Event::Of::Worker, worker);
  }

  //===--------------------------------------------------------------------===//
  // Work
  //===--------------------------------------------------------------------===//

  void beginWork(int32_t worker, double now, int64_t work) {
    int32_t clock = worker / devices;
    clocks[clock].begin(now, worker, work);
    expectNextEnd(clock);
  }

  void endWork(int32_t clock, double now) {
    int32_t worker = clocks[clock].end();
    expectNextEnd(clock);
    continueWorker(worker, now);
  }

  /// Predicts the next end of work in the group of cores of `clock`. Earlier
  /// predictions for this group become invalid.
  void expectNextEnd(int32_t clock) {
    ++turns[clock];
    if (!clocks[clock].isIdle())
      expect(clocks[clock].nextEnd(), Event::Of::Clock, clock, turns[clock]);
  }

  /// Continues worker `w` after the end of its phase, or after a wait.
  void continueWorker(int32_t w, double now) {
    const size_t actions = schedule.workers[w].size();
    std::optional<int64_t> work = 0;
    while (work == 0)
      work = workers[w].next < actions ? nextOfAction(w, now)
             : syncAndUpdate           ? nextSyncAndUpdate(w, now)
                                       : std::nullopt;
    if (work)
      beginWork(w, now, *work);
  }

  //===--------------------------------------------------------------------===//
  // Actions
  //===--------------------------------------------------------------------===//

  /// The work of the next phase of the worker's action, or nothing if the
  /// worker has to wait.
  std::optional<int64_t> nextOfAction(int32_t w, double now) {
    Worker &worker = workers[w];
    const Action &action = schedule.workers[w][worker.next];
    const ActionRule &rule = rules.ruleOf(action);
    const int64_t id = rules.idOf(action, rule) + worker.step * idsOfStep;
    switch (worker.phase) {
    case Phase::Wait:
      if (double ready = readyAt(worker, rule, id); ready > now) {
        if (ready < kNever)
          wake(w, ready);
        return std::nullopt;
      }
      note(timing.receiveBegins, w, now);
      worker.phase = Phase::Receive;
      return rule.receive;
    case Phase::Receive:
      note(timing.starts, w, now);
      if (numbers && rule.receivesMessage)
        received[numbers->channel[id + rule.otherStage]].push_back(now);
      worker.phase = Phase::Act;
      return rule.cost;
    case Phase::Act:
      note(timing.ends, w, now);
      if (syncAndUpdate)
        startAllReduces(w, now);
      worker.phase = Phase::Send;
      // The all-reduces and updates begin when the last action ends, while the
      // message of this action is sent.
      if (isBeforeSyncAndUpdate(w))
        return 0;
      return rule.send;
    case Phase::Send:
      note(timing.sendEnds, w, now);
      send(rule, id, action.microBatches,
           now +
               (isBeforeSyncAndUpdate(w) ? static_cast<double>(rule.send) : 0));
      worker.phase = Phase::Reduce;
      if (updates.empty() || updates[w][worker.next].wait == 0)
        return 0;
      wake(w, now + static_cast<double>(updates[w][worker.next].wait));
      return std::nullopt;
    case Phase::Reduce:
      worker.phase = Phase::Update;
      return updates.empty() ? 0 : updates[w][worker.next].update;
    case Phase::Update:
      note(timing.updateEnds, w, now);
      if (worker.step == 0)
        count(w, tick(now));
      worker.phase = Phase::Wait;
      ++worker.next;
      return 0;
    }
    return std::nullopt;
  }

  bool isBeforeSyncAndUpdate(int32_t w) const {
    return syncAndUpdate && workers[w].next + 1 == schedule.workers[w].size();
  }

  /// Times are recorded only in the first step.
  void note(std::vector<std::vector<int64_t>> &times, int32_t w, double now) {
    if (workers[w].step == 0)
      times[w][workers[w].next] = tick(now);
  }

  void count(int32_t w, int64_t now) {
    Worker &worker = workers[w];
    int64_t begin = timing.receiveBegins[w][worker.next];
    int64_t time = timing.ends[w][worker.next] - timing.starts[w][worker.next];
    worker.busy += time;
    worker.occupied += now - begin - time;
    worker.free = now;
    if (worker.next == 0)
      worker.begins = begin;
  }

  /// The time at which the dependencies and the message of the worker's next
  /// action allow it to begin. kNever if this time is not known yet.
  double readyAt(Worker &worker, const ActionRule &rule, int64_t id) const {
    // The dependency on the same stage runs on this worker too. If this
    // dependency has ended, it ended before the worker became free, so it
    // cannot delay the action.
    if (rule.sameStage != 0 && sent[id + rule.sameStage] == kNever)
      return kNever;
    if (rule.otherStage == 0)
      return 0;
    const int64_t other = id + rule.otherStage;
    if (sent[other] == kNever)
      worker.waitsFor = other;
    double from = sent[other];
    if (numbers && rule.receivesMessage)
      from = std::max(from, postedAt(other));
    return from + static_cast<double>(rule.flight);
  }

  /// The time at which the receive of the message of action `id` is posted.
  /// kNever if the receiving worker cannot post it yet.
  double postedAt(int64_t id) const {
    int32_t channel = numbers->channel[id];
    int64_t before = numbers->number[id] - numbers->windows[channel];
    const std::vector<double> &times = received[channel];
    if (before < 0)
      return 0;
    return before < std::ssize(times) ? times[before] : kNever;
  }

  void send(const ActionRule &rule, int64_t id, int32_t microBatches,
            double at) {
    for (int32_t m = 0; m < microBatches; ++m)
      sent[rules.actionIds().atLaterMicroBatch(id, m)] = at;
    if (rule.receiver >= 0 && workers[rule.receiver].waitsFor == id) {
      workers[rule.receiver].waitsFor = -1;
      wake(rule.receiver, at);
    }
  }

  //===--------------------------------------------------------------------===//
  // All-reduces and updates
  //===--------------------------------------------------------------------===//

  void prepareAllReduces() {
    std::vector<AllReduce> ofStep(syncAndUpdate->allReduces.size());
    followers.resize(workers.size());
    std::vector<int32_t> last(workers.size(), -1);
    for (size_t i = 0; i < ofStep.size(); ++i)
      for (int32_t worker : syncAndUpdate->allReduces[i].workers) {
        followers[worker].resize(ofStep.size(), -1);
        if (last[worker] >= 0)
          followers[worker][last[worker]] = static_cast<int32_t>(i);
        ofStep[i].missingNotices += last[worker] >= 0 ? 2 : 1;
        last[worker] = static_cast<int32_t>(i);
      }
    startedBy.resize(workers.size());
    for (size_t i = 0; i < ofStep.size(); ++i) {
      const SyncAndUpdateOrder::AllReduce &of = syncAndUpdate->allReduces[i];
      for (size_t part = 0; part < of.workers.size(); ++part)
        startedBy[of.workers[part]].push_back(
            {of.after[part], static_cast<int32_t>(i)});
    }
    for (std::vector<Started> &all : startedBy)
      std::ranges::stable_sort(all, {}, &Started::after);
    allReduces.assign(stepEnds.size(), ofStep);
  }

  /// Called when an action of the worker has ended: starts the all-reduces that
  /// the worker starts directly after this action.
  void startAllReduces(int32_t w, double now) {
    Worker &worker = workers[w];
    const std::vector<Started> &all = startedBy[w];
    while (worker.started < all.size() &&
           all[worker.started].after == static_cast<int32_t>(worker.next))
      notify(all[worker.started++].allReduce, worker.step, now);
  }

  void notify(int32_t i, int64_t step, double now) {
    if (--allReduces[step][i].missingNotices == 0)
      expect(now + static_cast<double>(syncAndUpdate->allReduces[i].time),
             Event::Of::AllReduce, i, step);
  }

  void endAllReduce(int32_t i, int64_t step, double now) {
    AllReduce &ended = allReduces[step][i];
    ended.hasEnded = true;
    for (int32_t worker : syncAndUpdate->allReduces[i].workers)
      if (int32_t next = followers[worker][i]; next >= 0 && !allReducesBlock)
        notify(next, step, now);
    for (int32_t worker : ended.waiting)
      wake(worker, now);
  }

  /// The work of the worker's next item of `syncAndUpdate`. Nothing if the
  /// worker has to wait or has ended its last step.
  std::optional<int64_t> nextSyncAndUpdate(int32_t w, double now) {
    Worker &worker = workers[w];
    if (worker.step == std::ssize(stepEnds))
      return std::nullopt;
    const std::vector<SyncAndUpdateOrder::WaitOrUpdate> &items =
        syncAndUpdate->items[w];
    if (worker.item == items.size()) {
      stepEnds[worker.step][w] = tick(now);
      if (++worker.step < std::ssize(stepEnds))
        worker.next = worker.item = worker.started = 0;
      return 0;
    }
    const SyncAndUpdateOrder::WaitOrUpdate &item = items[worker.item];
    AllReduce &allReduce = allReduces[worker.step][item.allReduce];
    if (!item.pipeline && !allReduce.hasEnded) {
      // If all-reduces block, this worker allows this all-reduce to begin only
      // now, after the updates before it. If they do not block, endAllReduce
      // has allowed it already.
      if (allReducesBlock && worker.item > 0)
        notify(static_cast<int32_t>(item.allReduce), worker.step, now);
      allReduce.waiting.push_back(w);
      return std::nullopt;
    }
    ++worker.item;
    return item.update;
  }

  const Schedule &schedule;
  const MessageNumbers *numbers;
  const SyncAndUpdateOrder *syncAndUpdate;
  ActionRules rules;
  int64_t idsOfStep;
  Timing timing;
  /// By action id, the time at which the action's message left its worker, or
  /// kNever if it has not left yet. If a forward covers several micro-batches,
  /// the ids of all of these micro-batches have the forward's time.
  std::vector<double> sent;
  /// For each channel, the times at which its messages were received, in the
  /// order in which they were received.
  std::vector<std::vector<double>> received;
  std::vector<Worker> workers;
  std::vector<std::vector<int64_t>> stepEnds;
  std::vector<std::vector<AllReduce>> allReduces; ///< by step
  std::vector<std::vector<Started>> startedBy;    ///< of each worker, in order
  /// For each worker and all-reduce, the worker's next all-reduce, or -1.
  std::vector<std::vector<int32_t>> followers;
  /// The update after each action; empty if no update or all-reduce takes time
  /// between actions.
  std::vector<std::vector<UpdateAfter>> updates;
  int32_t devices;      ///< of a node
  bool allReducesBlock; ///< Problem::blockingAllReduces
  std::vector<SharedClock> clocks;
  std::vector<int64_t> turns; ///< by clock: how often work began or ended
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t numberOfEvents = 0;
};

} // namespace

Timing simulateSharing(const Problem &problem, const Schedule &schedule,
                       std::span<const int64_t> begins,
                       const MessageNumbers *numbers) {
  SharingSimulation simulation(problem, schedule, numbers);
  simulation.run(begins);
  return simulation.takeTiming();
}

std::vector<std::vector<int64_t>>
simulateSharedSteps(const Problem &problem, const Schedule &schedule,
                    const SyncAndUpdateOrder &syncAndUpdate, int32_t steps) {
  SharingSimulation simulation(problem, schedule, nullptr, &syncAndUpdate,
                               steps);
  simulation.run({});
  return simulation.takeStepEnds();
}

} // namespace chimera::schedule
