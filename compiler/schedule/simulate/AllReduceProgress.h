//===- AllReduceProgress.h - The progress of all-reduces --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCEPROGRESS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCEPROGRESS_H

#include "compiler/schedule/simulate/SyncAndUpdate.h"

#include <algorithm>
#include <utility>

namespace chimera::schedule {

/// The times of the all-reduces of one step while a simulation runs. An
/// all-reduce needs no core, so its times follow from its inputs
/// (SyncAndUpdateOrder::AllReduce).
template <typename Clock> class AllReduceProgress {
public:
  using Time = typename Clock::Time;

  /// Keeps a reference to `order`. If all-reduces block, the end of an
  /// all-reduce is no input of another one.
  AllReduceProgress(const SyncAndUpdateOrder &order, bool block)
      : order(&order), block(block) {
    for (const SyncAndUpdateOrder::AllReduce &of : order.allReduces)
      states.push_back({.missing = of.inputs, .waiting = {}});
  }

  /// The latest of the known inputs of all-reduce `number`.
  Time beginOf(size_t number) const { return states[number].begin; }
  /// The end of all-reduce `number`, or kUnknown.
  Time endOf(size_t number) const { return states[number].end; }
  /// Lets `worker` wait until the end of all-reduce `number` is known.
  void wait(size_t number, int32_t worker) {
    states[number].waiting.push_back(worker);
  }

  /// An input of all-reduce `number` is known. If it was the last one, the end
  /// of this all-reduce is an input of each worker's next one. Calls
  /// `known(worker, end)` for each worker that waits for an end that is known
  /// from now on.
  template <typename Known>
  void addInput(int32_t number, Time time, Known known) {
    std::vector<std::pair<int32_t, Time>> inputs = {{number, time}};
    while (!inputs.empty()) {
      auto [next, input] = inputs.back();
      inputs.pop_back();
      State &state = states[next];
      state.begin = std::max(state.begin, input);
      if (--state.missing > 0)
        continue;
      const SyncAndUpdateOrder::AllReduce &of = order->allReduces[next];
      state.end = Clock::add(state.begin, of.time);
      for (int32_t worker : state.waiting)
        known(worker, state.end);
      if (!block)
        for (int32_t follower : of.next)
          inputs.emplace_back(follower, state.end);
    }
  }

private:
  struct State {
    int32_t missing; ///< number of inputs that are not known yet
    Time begin = 0;
    Time end = Clock::kUnknown;
    std::vector<int32_t> waiting; ///< workers
  };

  const SyncAndUpdateOrder *order;
  bool block;
  std::vector<State> states;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCEPROGRESS_H
