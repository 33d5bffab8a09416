//===- Simulation.h - The simulation of a step ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one simulation of a step graph, for both clocks (Clock.h). Simulate.h has
// the questions that it answers.
//
// A worker is a process. It runs the nodes of its actions in order and, if it
// is asked for, the all-reduces and updates after them. It stops if it needs a
// time that is not known yet, and continues when that time is known. Messages
// and all-reduces need no core, so their times follow from the times of
// workers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATION_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATION_H

#include "compiler/schedule/simulate/AllReduceProgress.h"
#include "compiler/schedule/simulate/Clock.h"
#include "compiler/schedule/simulate/CriticalPath.h"
#include "compiler/schedule/simulate/DeviceStreams.h"
#include "compiler/schedule/simulate/ReceiveWindows.h"
#include "compiler/schedule/simulate/StepGraph.h"

#include <algorithm>
#include <optional>

namespace chimera::schedule {

/// The parts of a simulation that are not in the graph. Keeps references.
struct SimulationParts {
  /// If set, receives are posted late (Windows.h).
  const ReceiveWindows *windows = nullptr;
  /// If set, messages run in the order of these operations; windows have no
  /// effect.
  const DeviceOperations *operations = nullptr;
  /// If set, each step ends with these all-reduces and updates.
  const SyncAndUpdateOrder *order = nullptr;
  /// Number of steps, which follow one another. More than one only with
  /// `order` and without windows and operations.
  int32_t steps = 1;
};

template <typename Clock> class Simulation {
public:
  using Time = typename Clock::Time;

  explicit Simulation(const StepGraph &graph, SimulationParts parts = {})
      : graph(graph), parts(parts), clock(graph.problem),
        hasUpdates(!graph.updates.empty()), hasJoined(graph.hasJoined),
        isPlain(!parts.windows && !parts.operations && !parts.order &&
                !hasUpdates && !hasJoined) {}
  Simulation(const Simulation &) = delete;
  Simulation &operator=(const Simulation &) = delete;

  /// Simulates. If `begins` is not empty, each worker begins at its own time,
  /// otherwise at 0. Returns the timing of the first step, which is valid until
  /// the next run. It has no idle times, peaks and critical path.
  const Timing &run(std::span<const int64_t> begins = {}) {
    prepare(begins);
    for (size_t w = workers.size(); w-- > 0;)
      clock.wake(static_cast<int32_t>(w), workers[w].now);
    runWorkers();
    complete();
    return timing;
  }

  /// The timing of the last run. No other function may be called before the
  /// next run.
  Timing takeTiming() { return std::move(timing); }

  /// Simulates only the all-reduces and updates of `order`, after actions with
  /// these times.
  SyncAndUpdate runAfter(const Timing &actions);

  /// When each worker ended each step, by step, in a run with `order`.
  const std::vector<std::vector<int64_t>> &stepEnds() const { return ends; }

  /// The critical path of the last run: see Timing::criticalPath. Requires that
  /// all workers began at 0, that all actions ran, and that there are no
  /// windows.
  std::vector<ActionRef> criticalPath() const {
    return CriticalPath<Clock>(graph, timing, sent,
                               streams ? &*streams : nullptr)
        .find();
  }

private:
  static constexpr Time kUnknown = Clock::kUnknown;

  /// The last part of its next action, or of its next item, that a worker has
  /// ended. If the worker had to stop, it continues with the part after it.
  enum class Done : uint8_t { Nothing, Receive, Compute, Send, Wait, Update };

  struct Worker {
    int32_t step = 0;
    int64_t firstId = 0; ///< of the step's action ids
    size_t next = 0;     ///< index of its next action
    size_t item = 0;     ///< index of its next SyncAndUpdateOrder::WaitOrUpdate
    size_t started = 0;  ///< number of the all-reduces that it has started
    Done done = Done::Nothing;
    uint8_t pairPart = 0; ///< the number of parts of its pair that have ended
    Time now = 0;
    int64_t waitsFor = -1; ///< id of the action for which it stopped
    int64_t begin = 0;     ///< of its action's receive, or of its item
    /// Begin of its first action and end of its last, with the receive before
    /// and the send and update after. See Timing::spans.
    int64_t first = 0, free = 0;
    int64_t busy = 0, occupied = 0;
  };

  //===--------------------------------------------------------------------===//
  // The run
  //===--------------------------------------------------------------------===//

  void prepare(std::span<const int64_t> begins) {
    const size_t count = graph.schedule.workers.size();
    workers.assign(count, {});
    std::vector<std::vector<std::vector<int64_t>> *> times = {&timing.starts,
                                                              &timing.ends};
    if (Clock::kSuspends || hasJoined)
      times.insert(times.end(), {&timing.receiveBegins, &timing.sendEnds,
                                 &timing.updateEnds});
    for (std::vector<std::vector<int64_t>> *rows : times) {
      rows->resize(count);
      for (size_t w = 0; w < count; ++w)
        (*rows)[w].assign(graph.schedule.workers[w].size(), -1);
    }
    sent.assign(graph.rules.actionIds().count() * parts.steps, kUnknown);
    for (size_t w = 0; w < begins.size(); ++w) {
      workers[w].now = static_cast<Time>(begins[w]);
      workers[w].free = begins[w];
    }
    if (parts.windows)
      received.assign(parts.windows->sizes.size(), {});
    if (parts.operations)
      streams.emplace(*parts.operations);
    if (parts.order)
      prepareAllReduces();
  }

  void runWorkers() {
    while (std::optional<Wakeup<Time>> next = clock.next()) {
      Worker &worker = workers[next->worker];
      worker.now = std::max(worker.now, next->time);
      while ((isPlain ? runActions<true>(next->worker)
                      : runActions<false>(next->worker)) &&
             parts.order && syncAndUpdate(next->worker))
        ;
    }
  }

  void complete() {
    timing.complete = true;
    timing.makespan = 0;
    for (std::vector<int64_t> *row :
         {&timing.busy, &timing.occupied, &timing.spans})
      row->resize(workers.size());
    for (size_t w = 0; w < workers.size(); ++w) {
      const Worker &worker = workers[w];
      timing.complete &= worker.next == graph.schedule.workers[w].size();
      timing.busy[w] = worker.busy;
      timing.occupied[w] = worker.occupied;
      timing.spans[w] = worker.free - worker.first;
      if (worker.next > 0)
        timing.makespan =
            std::max(timing.makespan, timing.ends[w][worker.next - 1]);
    }
  }

  /// Runs the actions of the worker's step. False if the worker has to stop. If
  /// the simulation is plain, the compiler can leave out most checks.
  template <bool kIsPlain> bool runActions(int32_t w) {
    Worker &worker = workers[w];
    const std::vector<Action> &actions = graph.schedule.workers[w];
    if (worker.next == actions.size())
      return true;
    int64_t *starts = timing.starts[w].data(), *ends = timing.ends[w].data();
    // Steps have millions of actions. These variables stay in registers.
    Time now = worker.now;
    size_t next = worker.next;
    while (isPair<kIsPlain>(actions[next])
               ? actPair(w, now)
               : act<kIsPlain>(w, worker, actions[next], starts[next],
                               ends[next], now)) {
      next += isPair<kIsPlain>(actions[next]) ? 2 : 1;
      worker.next = next;
      if (next == actions.size())
        break;
    }
    worker.now = now;
    return next == actions.size();
  }

  /// Lets the worker work. If the end is not known yet, returns false, and the
  /// worker continues later, after `what`.
  bool work(int32_t w, Done what, Time &now, int64_t amount) {
    if (clock.work(w, now, amount))
      return true;
    workers[w].done = what;
    return false;
  }

  /// Lets the worker wait until `time`, like `work`.
  bool waitUntil(int32_t w, Time &now, Time time) {
    if (clock.waitUntil(w, now, time))
      return true;
    workers[w].done = Done::Wait;
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Actions
  //===--------------------------------------------------------------------===//

  /// Runs `action`, the next of worker `w`, and notes its times if the step is
  /// the first. False if the worker has to stop. Must be inlined: a call would
  /// keep `now` in memory.
  template <bool kIsPlain>
  [[gnu::always_inline]] bool act(int32_t w, Worker &worker,
                                  const Action &action, int64_t &start,
                                  int64_t &end, Time &now) {
    const ActionRule &rule = graph.rules.ruleOf(action);
    const int64_t id = graph.rules.idOf(action, rule) + worker.firstId;
    int64_t begin = worker.begin;
    switch (Clock::kSuspends ? worker.done : Done::Nothing) {
    case Done::Nothing: {
      Time ready = readyAt<kIsPlain>(worker, rule, id);
      if (ready == kUnknown || !clock.waitUntil(w, now, ready))
        return false;
      begin = Clock::ticks(now);
      if (Clock::kSuspends)
        worker.begin = begin;
      note<kIsPlain>(timing.receiveBegins, w, worker.next, now);
      if (!work(w, Done::Receive, now, rule.receive))
        return false;
    }
      [[fallthrough]];
    case Done::Receive:
      if (kIsPlain || worker.step == 0)
        start = Clock::ticks(now);
      if (!kIsPlain && parts.windows && rule.receivesMessage)
        received[parts.windows->channel[id + rule.otherStage]].push_back(now);
      if (!work(w, Done::Compute, now,
                !kIsPlain && action.joinedWithNext ? graph.problem.cost(action)
                                                   : rule.cost))
        return false;
      [[fallthrough]];
    case Done::Compute:
      if (kIsPlain || worker.step == 0)
        end = Clock::ticks(now);
      if (!kIsPlain && parts.order)
        startAllReduces(w, worker.next, now);
      if (!isBeforeSyncAndUpdate<kIsPlain>(w, worker.next) &&
          !work(w, Done::Send, now, rule.send))
        return false;
      [[fallthrough]];
    case Done::Send:
      note<kIsPlain>(timing.sendEnds, w, worker.next, now);
      // The all-reduces and updates begin when the last action ends, while the
      // message of this action is sent.
      send<kIsPlain>(rule, id, action.microBatches,
                     isBeforeSyncAndUpdate<kIsPlain>(w, worker.next)
                         ? Clock::add(now, rule.send)
                         : now);
      if (!kIsPlain && hasUpdates &&
          !waitUntil(w, now,
                     Clock::add(now, graph.updates[w][worker.next].wait)))
        return false;
      [[fallthrough]];
    case Done::Wait:
      if (!kIsPlain && hasUpdates &&
          !work(w, Done::Update, now, graph.updates[w][worker.next].update))
        return false;
      [[fallthrough]];
    case Done::Update:
      note<kIsPlain>(timing.updateEnds, w, worker.next, now);
      if (kIsPlain || worker.step == 0)
        count(worker, begin, end - start, Clock::ticks(now));
      if (Clock::kSuspends)
        worker.done = Done::Nothing;
    }
    return true;
  }

  template <bool kIsPlain>
  bool isBeforeSyncAndUpdate(int32_t w, size_t index) const {
    return !kIsPlain && parts.order &&
           index + 1 == graph.schedule.workers[w].size();
  }

  /// Notes a time that does not follow from the start or the end of the action
  /// if workers share cores or the schedule has pairs.
  template <bool kIsPlain>
  void note(std::vector<std::vector<int64_t>> &times, int32_t w, size_t index,
            Time now) {
    if ((Clock::kSuspends || (!kIsPlain && hasJoined)) && workers[w].step == 0)
      times[w][index] = Clock::ticks(now);
  }

  static void count(Worker &worker, int64_t begin, int64_t busy, int64_t now) {
    worker.busy += busy;
    worker.occupied += now - begin - busy;
    worker.free = now;
    if (worker.next == 0)
      worker.first = begin;
  }

  //===--------------------------------------------------------------------===//
  // Pairs
  //===--------------------------------------------------------------------===//

  /// The parts of an action in a pair. Both actions end a part before the next
  /// part begins.
  enum class PairPart { Wait, Receive, Compute, Send };

  template <bool kIsPlain> static bool isPair(const Action &action) {
    return !kIsPlain && beginsPair(action);
  }

  /// Runs the pair that is next on worker `w`: waits until both actions can
  /// begin, receives both messages, computes both actions, and sends both
  /// results. False if the worker has to stop.
  bool actPair(int32_t w, Time &now) {
    constexpr PairPart kParts[] = {PairPart::Wait, PairPart::Receive,
                                   PairPart::Compute, PairPart::Send};
    Worker &worker = workers[w];
    for (; worker.pairPart < 2 * std::size(kParts); ++worker.pairPart) {
      const size_t index = worker.next + worker.pairPart % 2;
      if (worker.done == Done::Nothing)
        worker.begin = Clock::ticks(now);
      if (!actPartOfPair(w, index, kParts[worker.pairPart / 2], now))
        return false;
      worker.done = Done::Nothing;
    }
    worker.pairPart = 0;
    return true;
  }

  /// Runs a part of the action at `index`, which is in a pair. False if the
  /// worker has to stop.
  bool actPartOfPair(int32_t w, size_t index, PairPart part, Time &now) {
    Worker &worker = workers[w];
    const Action &action = graph.schedule.workers[w][index];
    const ActionRule &rule = graph.rules.ruleOf(action);
    const int64_t id = graph.rules.idOf(action, rule) + worker.firstId;
    const bool isNew = worker.done == Done::Nothing;
    if (part == PairPart::Wait) {
      Time ready = readyAt<false>(worker, rule, id);
      return ready != kUnknown && clock.waitUntil(w, now, ready);
    }
    if (part == PairPart::Receive) {
      if (isNew) {
        note<false>(timing.receiveBegins, w, index, now);
        if (!work(w, Done::Receive, now, rule.receive))
          return false;
      }
      if (parts.windows && rule.receivesMessage)
        received[parts.windows->channel[id + rule.otherStage]].push_back(now);
      if (index == 0 && worker.step == 0)
        worker.first = worker.begin;
      occupy(worker, now);
      return true;
    }
    if (part == PairPart::Compute) {
      if (isNew) {
        note<false>(timing.starts, w, index, now);
        if (!work(w, Done::Compute, now, graph.problem.cost(action)))
          return false;
      }
      note<false>(timing.ends, w, index, now);
      if (worker.step == 0)
        worker.busy += Clock::ticks(now) - worker.begin;
      if (parts.order)
        startAllReduces(w, index, now);
      return true;
    }
    const bool isBefore = isBeforeSyncAndUpdate<false>(w, index);
    if (isNew && !isBefore && !work(w, Done::Send, now, rule.send))
      return false;
    note<false>(timing.sendEnds, w, index, now);
    note<false>(timing.updateEnds, w, index, now);
    send<false>(rule, id, action.microBatches,
                isBefore ? Clock::add(now, rule.send) : now);
    occupy(worker, now);
    if (worker.step == 0)
      worker.free = Clock::ticks(now);
    return true;
  }

  /// Counts the time since the begin of a part as occupied.
  static void occupy(Worker &worker, Time now) {
    if (worker.step == 0)
      worker.occupied += Clock::ticks(now) - worker.begin;
  }

  //===--------------------------------------------------------------------===//
  // Messages
  //===--------------------------------------------------------------------===//

  /// The time at which the dependencies and the message of the worker's next
  /// action allow it to begin, or kUnknown.
  template <bool kIsPlain>
  Time readyAt(Worker &worker, const ActionRule &rule, int64_t id) const {
    // The dependency on the same stage runs on this worker too. If it has
    // ended, it ended before the worker became free, so it cannot delay the
    // action.
    if (rule.sameStage != 0 && sent[id + rule.sameStage] == kUnknown)
      return kUnknown;
    if (rule.otherStage == 0)
      return 0;
    const int64_t other = id + rule.otherStage;
    Time arrival = arrivalOf<kIsPlain>(rule, other);
    if (arrival == kUnknown)
      worker.waitsFor = other;
    return arrival;
  }

  /// The time at which the result of action `other` has arrived at the worker
  /// that needs it for an action with `rule`, or kUnknown.
  template <bool kIsPlain>
  Time arrivalOf(const ActionRule &rule, int64_t other) const {
    if (!kIsPlain && streams && rule.receivesMessage)
      return streams->arrivalOf(other);
    Time begin = sent[other];
    if (begin == kUnknown)
      return kUnknown;
    if (!kIsPlain && parts.windows && rule.receivesMessage) {
      Time posted = postedAt(other);
      if (posted == kUnknown)
        return kUnknown;
      begin = std::max(begin, posted);
    }
    return begin + static_cast<Time>(rule.flight);
  }

  /// The time at which the receive of the message of action `id` is posted, or
  /// kUnknown. The first receives of a channel are posted at 0. Each later
  /// receive is posted when an earlier message of the channel is received.
  Time postedAt(int64_t id) const {
    int32_t channel = parts.windows->channel[id];
    int64_t before = parts.windows->number[id] - parts.windows->sizes[channel];
    if (before < 0)
      return 0;
    const std::vector<Time> &times = received[channel];
    return before < std::ssize(times) ? times[before] : kUnknown;
  }

  template <bool kIsPlain>
  void send(const ActionRule &rule, int64_t id, int32_t microBatches, Time at) {
    for (int32_t m = 0; m < microBatches; ++m)
      sent[graph.rules.actionIds().atLaterMicroBatch(id, m)] = at;
    if (kIsPlain || !streams || !rule.sendsMessage)
      return wakeReceiver(rule.receiver, id, at);
    streams->send(id, at,
                  [&](const DeviceOperations::Transfer &transfer, Time time) {
                    wakeReceiver(transfer.receiver, transfer.message, time);
                  });
  }

  void wakeReceiver(int32_t receiver, int64_t id, Time at) {
    if (receiver < 0 || workers[receiver].waitsFor != id)
      return;
    workers[receiver].waitsFor = -1;
    clock.wake(receiver, at);
  }

  //===--------------------------------------------------------------------===//
  // All-reduces and updates
  //===--------------------------------------------------------------------===//

  void prepareAllReduces() {
    allReduces.assign(parts.steps,
                      {*parts.order, graph.problem.blockingAllReduces});
    ends.assign(parts.steps, std::vector<int64_t>(workers.size()));
    result = {};
    result.work.resize(workers.size());
  }

  /// Starts the all-reduces that the worker starts after the action at `index`.
  void startAllReduces(int32_t w, size_t index, Time now) {
    Worker &worker = workers[w];
    const std::vector<SyncAndUpdateOrder::Start> &all = parts.order->starts[w];
    while (worker.started < all.size() &&
           all[worker.started].after == static_cast<int32_t>(index))
      notify(worker.step, all[worker.started++].allReduce, now);
  }

  void notify(int32_t step, int32_t number, Time time) {
    allReduces[step].addInput(number, time, [&](int32_t worker, Time end) {
      clock.wake(worker, end);
    });
  }

  /// Runs the worker's all-reduces and updates. False if it has to stop, or if
  /// this was its last step.
  bool syncAndUpdate(int32_t w) {
    Worker &worker = workers[w];
    Time &now = worker.now;
    if (worker.step == parts.steps)
      return false;
    const std::vector<SyncAndUpdateOrder::WaitOrUpdate> &items =
        parts.order->items[w];
    for (; worker.item < items.size(); ++worker.item) {
      const SyncAndUpdateOrder::WaitOrUpdate &item = items[worker.item];
      if (worker.done == Done::Nothing)
        worker.begin = Clock::ticks(now);
      if (!(item.pipeline ? update(w, item, now) : waitFor(w, item, now)))
        return false;
      worker.done = Done::Nothing;
      if (int64_t end = Clock::ticks(now);
          worker.step == 0 && end > worker.begin)
        result.work[w].push_back(workOf(item, {worker.begin, end}));
    }
    ends[worker.step][w] = Clock::ticks(now);
    if (++worker.step == parts.steps)
      return false;
    worker.next = worker.item = worker.started = 0;
    worker.firstId += graph.rules.actionIds().count();
    return true;
  }

  bool update(int32_t w, const SyncAndUpdateOrder::WaitOrUpdate &item,
              Time &now) {
    return workers[w].done == Done::Update ||
           work(w, Done::Update, now, item.update);
  }

  bool waitFor(int32_t w, const SyncAndUpdateOrder::WaitOrUpdate &item,
               Time &now) {
    Worker &worker = workers[w];
    // If all-reduces block, this worker is ready for this all-reduce only now,
    // after the updates before it.
    if (worker.done == Done::Nothing && worker.item > 0 &&
        graph.problem.blockingAllReduces)
      notify(worker.step, static_cast<int32_t>(item.allReduce), now);
    worker.done = Done::Wait;
    AllReduceProgress<Clock> &ofStep = allReduces[worker.step];
    if (Time end = ofStep.endOf(item.allReduce); end != kUnknown)
      return clock.waitUntil(w, now, end);
    ofStep.wait(item.allReduce, w);
    return false;
  }

  SyncAndUpdate::Work workOf(const SyncAndUpdateOrder::WaitOrUpdate &item,
                             Span span) const {
    SyncAndUpdate::Work work;
    static_cast<Span &>(work) = span;
    work.stage = item.stage;
    work.pipeline = item.pipeline;
    work.isNorm =
        !item.pipeline && parts.order->allReduces[item.allReduce].isNorm;
    return work;
  }

  const StepGraph &graph;
  SimulationParts parts;
  Clock clock;
  const bool hasUpdates; ///< between actions
  const bool hasJoined;
  const bool isPlain; ///< there is nothing but actions and their messages
  Timing timing;      ///< of the first step
  std::vector<Worker> workers;
  /// By action id, the time at which the action's result left its worker, or
  /// kUnknown. If a forward covers several micro-batches, the ids of all of
  /// these micro-batches have the forward's time. Each step has its own ids.
  std::vector<Time> sent;
  /// For each channel, the times at which its messages were received, in the
  /// order in which they were received.
  std::vector<std::vector<Time>> received;
  std::optional<DeviceStreams<Clock>> streams;
  std::vector<AllReduceProgress<Clock>> allReduces; ///< by step
  std::vector<std::vector<int64_t>> ends;           ///< by step and worker
  SyncAndUpdate result;                             ///< of the first step
};

template <typename Clock>
SyncAndUpdate Simulation<Clock>::runAfter(const Timing &actions) {
  const size_t count = actions.ends.size();
  workers.assign(count, {});
  prepareAllReduces();
  for (size_t w = 0; w < count; ++w) {
    const std::vector<int64_t> &own = actions.ends[w];
    workers[w].next = own.size();
    if (!own.empty())
      workers[w].now = static_cast<Time>(own.back());
    result.actionEnds.push_back(own.empty() ? 0 : own.back());
    for (const SyncAndUpdateOrder::Start &start : parts.order->starts[w])
      notify(0, start.allReduce, static_cast<Time>(own[start.after]));
    clock.wake(static_cast<int32_t>(w), workers[w].now);
  }
  runWorkers();
  for (size_t i = 0; i < parts.order->allReduces.size(); ++i) {
    const SyncAndUpdateOrder::AllReduce &of = parts.order->allReduces[i];
    SyncAndUpdate::AllReduce &span = result.allReduces.emplace_back();
    span.begin = Clock::ticks(allReduces[0].beginOf(i));
    span.end = Clock::ticks(allReduces[0].endOf(i));
    span.stage = of.stage;
    span.isNorm = of.isNorm;
    span.workers = of.workers;
  }
  result.ends = std::move(ends[0]);
  return std::move(result);
}

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATION_H
