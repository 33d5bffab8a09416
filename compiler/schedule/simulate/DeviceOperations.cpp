//===- DeviceOperations.cpp - Messages in one order on each device --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/DeviceOperations.h"

#include <functional>
#include <limits>
#include <queue>

namespace chimera::schedule {

namespace {

/// Posts all messages in the order of time, and groups the posts of each worker
/// into operations.
class OperationBuilder {
public:
  OperationBuilder(const StepGraph &graph, const Timing &timing)
      : graph(graph), timing(timing), workers(graph.schedule.workers.size()) {
    result.transferOf.assign(graph.rules.actionIds().count(), -1);
  }

  DeviceOperations build() {
    // The actions that send a message, sorted by the time at which they end. A
    // message is posted at the end of its action.
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    auto postUntil = [&](int64_t time) {
      for (; !ready.empty() && ready.top().time <= time; ready.pop())
        post({ready.top().worker, ready.top().index});
    };
    for (ActionRef ref : inOrderOfStarts(timing)) {
      postUntil(timing.starts[ref.worker][ref.index]);
      addOperations(workers[ref.worker]);
      const Action &action = graph.actionAt(ref);
      // The messages of a pair are posted at its end.
      const int32_t last = ref.index + (beginsPair(action) ? 1 : 0);
      if (graph.rules.ruleOf(action).sendsMessage)
        ready.push({timing.ends[ref.worker][last], ref.worker, ref.index});
    }
    postUntil(std::numeric_limits<int64_t>::max());
    for (Worker &worker : workers)
      addOperations(worker);
    return std::move(result);
  }

private:
  /// An action whose message is ready at `time`.
  struct Ready {
    int64_t time;
    int32_t worker, index;
    auto operator<=>(const Ready &) const = default;
  };
  struct Post {
    int32_t transfer;
    bool isSend;
  };
  struct Worker {
    int32_t operation = -1;  ///< its last operation
    std::vector<Post> posts; ///< since its last action
  };

  void post(ActionRef ref) {
    const Action &action = graph.actionAt(ref);
    const ActionRule &rule = graph.rules.ruleOf(action);
    const int64_t message = graph.rules.idOf(action, rule);
    auto transfer = static_cast<int32_t>(result.transfers.size());
    const Link &link = graph.problem.linkBetween(ref.worker, rule.receiver);
    result.transfers.push_back(
        {message, rule.receiver,
         graph.problem.messageTime(link, graph.rules.sentBy(action)->stage,
                                   action)});
    result.transferOf[message] = transfer;
    workers[ref.worker].posts.push_back({transfer, true});
    workers[rule.receiver].posts.push_back({transfer, false});
  }

  /// Makes operations of the posts since the worker's last action: consecutive
  /// sends and the first receive after them are one operation.
  void addOperations(Worker &worker) {
    bool isOpen = false;
    for (const Post &post : worker.posts) {
      if (!isOpen)
        addOperation(worker);
      isOpen = post.isSend;
      result.posts.push_back(post.transfer);
      DeviceOperations::Operation &operation = result.operations.back();
      ++operation.end;
      operation.sends += post.isSend;
      DeviceOperations::Transfer &transfer = result.transfers[post.transfer];
      (post.isSend ? transfer.sends : transfer.receives) = worker.operation;
    }
    worker.posts.clear();
  }

  void addOperation(Worker &worker) {
    auto operation = static_cast<int32_t>(result.operations.size());
    auto begin = static_cast<int32_t>(result.posts.size());
    result.operations.push_back(
        {.begin = begin, .end = begin, .isFirst = worker.operation < 0});
    if (worker.operation >= 0)
      result.operations[worker.operation].next = operation;
    worker.operation = operation;
  }

  const StepGraph &graph;
  const Timing &timing;
  std::vector<Worker> workers;
  DeviceOperations result;
};

} // namespace

DeviceOperations deviceOperationsOf(const StepGraph &graph,
                                    const Timing &timing) {
  return OperationBuilder(graph, timing).build();
}

} // namespace chimera::schedule
