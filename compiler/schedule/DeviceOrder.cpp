//===- DeviceOrder.cpp - Messages in one order on each device -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/DeviceOrder.h"

#include "compiler/schedule/CoreGroups.h"
#include "compiler/schedule/Messages.h"
#include "compiler/schedule/UpdatesAfter.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

namespace chimera::schedule {

namespace {

/// A graph of events. An edge is the least time from one event to another. Each
/// event happens as soon as all its edges allow.
class EventGraph {
public:
  /// Adds an event that happens at time `least` or later.
  int32_t add(int64_t least = 0) {
    times.push_back(least);
    return static_cast<int32_t>(times.size() - 1);
  }
  void happensAfter(int32_t event, int32_t other, int64_t time) {
    edges.push_back({other, event, time});
  }

  /// Returns the times of all events. Requires that the graph has no cycle.
  const std::vector<int64_t> &run() {
    std::vector<int32_t> incoming(times.size()), begin(times.size() + 1);
    for (const Edge &edge : edges) {
      ++incoming[edge.to];
      ++begin[edge.from + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int32_t> outgoing(edges.size()), next = begin;
    for (size_t e = 0; e < edges.size(); ++e)
      outgoing[next[edges[e].from]++] = static_cast<int32_t>(e);
    std::vector<int32_t> ready;
    for (size_t event = 0; event < times.size(); ++event)
      if (incoming[event] == 0)
        ready.push_back(static_cast<int32_t>(event));
    while (!ready.empty()) {
      int32_t event = ready.back();
      ready.pop_back();
      for (int32_t e = begin[event]; e < begin[event + 1]; ++e) {
        const Edge &edge = edges[outgoing[e]];
        times[edge.to] = std::max(times[edge.to], times[event] + edge.time);
        if (--incoming[edge.to] == 0)
          ready.push_back(edge.to);
      }
    }
    return times;
  }

private:
  struct Edge {
    int32_t from, to;
    int64_t time;
  };
  std::vector<int64_t> times;
  std::vector<Edge> edges;
};

/// A message, with the indices of the operations of its send and its receive.
struct Transfer {
  int64_t flight;
  int32_t ready; ///< event: the message has left its sender
  int32_t sends = -1, receives = -1;
};

/// An operation of a worker's device: one send or receive, or a group.
struct Operation {
  int32_t effect, end; ///< events: its messages can begin, they are complete
};

/// Places sends and receives in the same way as the passes chimera-communicate
/// and chimera-place-messages, then computes all times.
class Device {
public:
  Device(const Problem &problem, const Schedule &schedule, const Timing &timing)
      : problem(problem), schedule(schedule), timing(timing), ids(problem),
        updates(updatesAfter(problem, schedule)), transferOf(ids.count(), -1),
        workers(schedule.workers.size()) {}

  int64_t run() {
    // The actions that send a message, sorted by the time at which they end. A
    // message is posted at the end of its action.
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    auto postUntil = [&](int64_t time) {
      for (; !ready.empty() && ready.top().time <= time; ready.pop())
        post({ready.top().worker, ready.top().index});
    };
    for (ActionRef ref : inOrderOfStarts(timing)) {
      postUntil(at(timing.starts, ref));
      endRun(ref.worker);
      act(ref);
      if (sentBy(problem, ids, at(schedule.workers, ref)))
        ready.push({at(timing.ends, ref), ref.worker, ref.index});
    }
    postUntil(std::numeric_limits<int64_t>::max());
    for (size_t w = 0; w < workers.size(); ++w)
      endRun(static_cast<int32_t>(w));
    for (const Transfer &transfer : transfers)
      for (int32_t own : {transfer.sends, transfer.receives})
        for (int32_t other : {transfer.sends, transfer.receives})
          events.happensAfter(operations[own].end, operations[other].effect,
                              transfer.flight);
    for (auto [start, transfer] : awaited)
      events.happensAfter(start.event,
                          operations[transfers[transfer].receives].end,
                          start.receive);
    const std::vector<int64_t> &times = events.run();
    int64_t makespan = 0;
    for (const Worker &worker : workers)
      if (worker.last >= 0)
        makespan = std::max(makespan, times[worker.last]);
    return makespan;
  }

private:
  /// A send or receive of a worker, posted after the last action that is
  /// simulated so far.
  struct Post {
    int32_t transfer;
    bool isSend;
  };
  struct Worker {
    int32_t last = -1;      ///< event: the end of its last action
    int32_t free = -1;      ///< event: the message of that action has left
    int64_t update = 0;     ///< time of the update after `free`, if any
    int32_t operation = -1; ///< its last operation
    std::vector<Post> run;  ///< the posts since its last action
  };
  struct Start {
    int32_t event;
    int64_t receive; ///< time of the receive before it
  };

  /// An action whose message is ready at `time`.
  struct Ready {
    int64_t time;
    int32_t worker, index;
    auto operator<=>(const Ready &) const = default;
  };

  template <typename T>
  static const T &at(const std::vector<std::vector<T>> &rows, ActionRef ref) {
    return rows[ref.worker][ref.index];
  }

  const Link &linkTo(int32_t worker, const Message &message) const {
    return problem.linkBetween(worker, message.peer);
  }

  int64_t time(const MessageTime &of, const Message &message,
               const Action &action) const {
    return problem.messageTime(of, message.stage, action);
  }

  //===--------------------------------------------------------------------===//
  // Times of actions and updates if workers share cores
  //===--------------------------------------------------------------------===//

  bool sharesCores() const { return !timing.receiveBegins.empty(); }

  int64_t receiveTime(ActionRef ref, const Message &message) const {
    return sharesCores()
               ? at(timing.starts, ref) - at(timing.receiveBegins, ref)
               : time(linkTo(ref.worker, message).receive, message,
                      at(schedule.workers, ref));
  }
  int64_t sendTime(ActionRef ref, const Message &message) const {
    return sharesCores() ? at(timing.sendEnds, ref) - at(timing.ends, ref)
                         : time(linkTo(ref.worker, message).send, message,
                                at(schedule.workers, ref));
  }
  int64_t updateTime(ActionRef ref) const {
    if (updates.empty())
      return 0;
    return sharesCores() ? at(timing.updateEnds, ref) - at(timing.sendEnds, ref)
                         : at(updates, ref).time();
  }

  void act(ActionRef ref) {
    Worker &worker = workers[ref.worker];
    const Action &action = at(schedule.workers, ref);
    Start start{events.add(at(timing.starts, ref)), 0};
    if (std::optional<Message> message = awaitedBy(problem, ids, action)) {
      start.receive = receiveTime(ref, *message);
      awaited.emplace_back(start, transferOf[message->producer]);
    }
    if (worker.free >= 0)
      events.happensAfter(start.event, worker.free,
                          worker.update + start.receive);
    worker.last = worker.free = events.add();
    worker.update = updateTime(ref);
    events.happensAfter(worker.last, start.event,
                        at(timing.ends, ref) - at(timing.starts, ref));
  }

  void post(ActionRef ref) {
    Worker &worker = workers[ref.worker];
    const Action &action = at(schedule.workers, ref);
    std::optional<Message> sent = sentBy(problem, ids, action);
    worker.free = events.add();
    events.happensAfter(worker.free, worker.last, sendTime(ref, *sent));
    auto transfer = static_cast<int32_t>(transfers.size());
    transfers.push_back(
        {time(linkTo(ref.worker, *sent), *sent, action), worker.free});
    transferOf[sent->producer] = transfer;
    worker.run.push_back({transfer, true});
    workers[sent->peer].run.push_back({transfer, false});
  }

  /// Makes operations of the posts since the worker's last action: consecutive
  /// sends and the first receive after them are one operation.
  void endRun(int32_t w) {
    Worker &worker = workers[w];
    bool isOpen = false;
    for (const Post &post : worker.run) {
      if (!isOpen)
        addOperation(worker);
      isOpen = post.isSend;
      Transfer &transfer = transfers[post.transfer];
      (post.isSend ? transfer.sends : transfer.receives) = worker.operation;
      if (post.isSend)
        events.happensAfter(operations[worker.operation].effect, transfer.ready,
                            0);
    }
    worker.run.clear();
  }

  void addOperation(Worker &worker) {
    Operation operation{events.add(), events.add()};
    if (worker.operation >= 0)
      events.happensAfter(operation.effect, operations[worker.operation].end,
                          0);
    worker.operation = static_cast<int32_t>(operations.size());
    operations.push_back(operation);
  }

  const Problem &problem;
  const Schedule &schedule;
  const Timing &timing;
  ActionIds ids;
  /// The update after each action; empty if no update or all-reduce takes time
  /// between actions.
  std::vector<std::vector<UpdateAfter>> updates;
  EventGraph events;
  /// By id of the sending action, the index of its message in `transfers`.
  std::vector<int32_t> transferOf;
  std::vector<Transfer> transfers;
  std::vector<Operation> operations;
  /// The starts of actions that wait for a message, and the index of this
  /// message in `transfers`.
  std::vector<std::pair<Start, int32_t>> awaited;
  std::vector<Worker> workers;
};

} // namespace

int64_t makespanInDeviceOrder(const Problem &problem, const Schedule &schedule,
                              const Timing &timing) {
  return Device(problem, schedule, timing).run();
}

} // namespace chimera::schedule
