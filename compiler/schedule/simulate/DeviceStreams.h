//===- DeviceStreams.h - The progress of device operations ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICESTREAMS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICESTREAMS_H

#include "compiler/schedule/simulate/DeviceOperations.h"

namespace chimera::schedule {

/// The times of device operations while a simulation runs. Operations need no
/// core, so their times follow from the times at which messages leave workers.
template <typename Clock> class DeviceStreams {
public:
  using Time = typename Clock::Time;

  explicit DeviceStreams(const DeviceOperations &all) : all(all) {
    for (const DeviceOperations::Operation &operation : all.operations)
      states.push_back({operation.sends + (operation.isFirst ? 0 : 1),
                        2 * (operation.end - operation.begin)});
    // An operation without sends takes effect at once if it is the first.
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i].missingInputs == 0)
        effective.push_back(static_cast<int32_t>(i));
  }

  /// The time at which the message of action `id` has arrived, or kUnknown.
  Time arrivalOf(int64_t id) const {
    const State &state = states[receiveOf(id)];
    return state.missingEffects == 0 ? state.end : Clock::kUnknown;
  }
  /// The id of the action whose message determined this arrival. It may be
  /// another action, for whose message an operation had to wait.
  int64_t causeOf(int64_t id) const { return states[receiveOf(id)].endCause; }

  /// The message of action `id` has left its worker at `time`. Calls
  /// `arrived(transfer, time)` for each message whose arrival is known from now
  /// on.
  template <typename Arrived>
  void send(int64_t id, Time time, Arrived arrived) {
    notify(all.transfers[all.transferOf[id]].sends, time, id);
    while (!effective.empty()) {
      int32_t operation = effective.back();
      effective.pop_back();
      takeEffect(operation, arrived);
    }
  }

private:
  struct State {
    /// The number of inputs that are missing before the operation takes effect:
    /// its sends, and the end of the previous operation.
    int32_t missingInputs;
    /// The number of ends of its messages that have not taken effect.
    int32_t missingEffects;
    Time effect = 0, end = 0; ///< the latest of the known causes
    int64_t effectCause = -1, endCause = -1;
  };

  int32_t receiveOf(int64_t id) const {
    return all.transfers[all.transferOf[id]].receives;
  }

  void notify(int32_t operation, Time time, int64_t cause) {
    State &state = states[operation];
    if (time >= state.effect) {
      state.effect = time;
      state.effectCause = cause;
    }
    if (--state.missingInputs == 0)
      effective.push_back(operation);
  }

  template <typename Arrived>
  void takeEffect(int32_t operation, Arrived arrived) {
    const State &own = states[operation];
    for (int32_t index : all.transfersOf(all.operations[operation])) {
      const DeviceOperations::Transfer &transfer = all.transfers[index];
      for (int32_t end : {transfer.sends, transfer.receives})
        finishAt(end, Clock::add(own.effect, transfer.flight), own.effectCause,
                 arrived);
    }
  }

  /// An end of a message of `operation` has taken effect, and the message takes
  /// until `time`.
  template <typename Arrived>
  void finishAt(int32_t operation, Time time, int64_t cause, Arrived arrived) {
    State &state = states[operation];
    if (time >= state.end) {
      state.end = time;
      state.endCause = cause;
    }
    if (--state.missingEffects > 0)
      return;
    if (int32_t next = all.operations[operation].next; next >= 0)
      notify(next, state.end, state.endCause);
    for (int32_t index : all.transfersOf(all.operations[operation]))
      if (const DeviceOperations::Transfer &transfer = all.transfers[index];
          transfer.receives == operation)
        arrived(transfer, state.end);
  }

  const DeviceOperations &all;
  std::vector<State> states;
  std::vector<int32_t> effective; ///< operations that take effect now
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICESTREAMS_H
