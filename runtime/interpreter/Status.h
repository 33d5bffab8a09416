//===- Status.h - The activity of a rank ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_STATUS_H
#define CHIMERA_RUNTIME_INTERPRETER_STATUS_H

#include "runtime/interpreter/StepUse.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace chimera::runtime {

/// The time of the host's steady clock in nanoseconds. All processes of a host
/// read the same clock.
int64_t steadyNanoseconds();

/// The entry of one rank in the status page. It is in shared memory, so it has
/// no pointers. An entry with all bytes zero is valid.
struct alignas(64) Status {
  enum State : uint32_t {
    Absent,     ///< not started yet, or on another host
    Starting,   ///< allocating memory, initialising weights
    Running,    ///< at instruction `instruction` of step `step`
    Finishing,  ///< after the last step: collecting results
    Saving,     ///< writing a checkpoint, or as the root the results
    Evaluating, ///< at `instruction` of a pass; `step` steps have ended
    Done,       ///< finished; the process may exit
    Failed      ///< the error in `reason` ended the rank
  };

  std::atomic<uint32_t> state;
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> step;
  std::atomic<uint32_t> instruction;
  /// The time, by steadyNanoseconds, at which the rank entered this state or
  /// reached this instruction.
  std::atomic<int64_t> since;
  /// Not 0 if the device has not yet run all instructions that the host has
  /// enqueued. In this case, the next three fields have the instruction of the
  /// device, its step, and the time at which the device reached it.
  std::atomic<uint32_t> isBehind;
  std::atomic<uint32_t> deviceInstruction;
  std::atomic<uint64_t> deviceStep;
  std::atomic<int64_t> deviceSince;
  /// The fields of the rank's StepUse.
  std::atomic<uint64_t> residentBytes, deviceBytes, measured;
  std::atomic<double> waiting;
  /// Whether a thread has begun to write the reason of a failure.
  std::atomic<uint32_t> isFailing;
  /// The state of the rank before the failure.
  std::atomic<uint32_t> failedIn;
  /// The error text, with a zero byte at its end. Valid if the state is Failed.
  std::array<char, 1000> reason;

  void enter(State next) {
    since.store(steadyNanoseconds(), std::memory_order_relaxed);
    state.store(next, std::memory_order_release);
  }
  /// Returns the time, by steadyNanoseconds.
  int64_t setPosition(uint64_t newStep, uint32_t newInstruction) {
    const int64_t now = steadyNanoseconds();
    step.store(newStep, std::memory_order_relaxed);
    instruction.store(newInstruction, std::memory_order_relaxed);
    since.store(now, std::memory_order_relaxed);
    return now;
  }
  void setDevicePosition(uint64_t itsStep, uint32_t itsInstruction) {
    deviceStep.store(itsStep, std::memory_order_relaxed);
    deviceInstruction.store(itsInstruction, std::memory_order_relaxed);
    deviceSince.store(steadyNanoseconds(), std::memory_order_relaxed);
    isBehind.store(1, std::memory_order_release);
  }
  void deviceIsIdle() { isBehind.store(0, std::memory_order_release); }
  /// Sets the rank's use in its last step. Other ranks may read it meanwhile:
  /// they then see some fields of the step before.
  void setUse(const StepUse &use);
  StepUse use() const;
  /// Records a failure of the rank. Later failures are ignored. Several threads
  /// of the process may call it at the same time.
  void fail(const std::string &text);
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_STATUS_H
