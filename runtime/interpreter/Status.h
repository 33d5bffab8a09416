//===- Status.h - What a rank is doing --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_STATUS_H
#define CHIMERA_RUNTIME_INTERPRETER_STATUS_H

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace chimera::runtime {

/// The host's steady clock in nanoseconds, comparable between processes.
int64_t steadyNanoseconds();

/// The entry of one rank in the status page. It is in shared memory, so it has
/// no pointers, and zero is a valid initial value.
struct alignas(64) Status {
  enum State : uint32_t {
    Absent,     ///< not started, or on another host
    Starting,   ///< allocating, initialising weights
    Running,    ///< at `instruction` of step `step`
    Finishing,  ///< after the last step: gathering results
    Saving,     ///< the root saves
    Evaluating, ///< at `instruction` of a pass, after `step` steps
    Done,       ///< may exit
    Failed      ///< ended by the error in `reason`
  };

  std::atomic<uint32_t> state;
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> step;
  std::atomic<uint32_t> instruction;
  /// The time at which it got there, by steadyNanoseconds.
  std::atomic<int64_t> since;
  /// Not 0 if the device still has to run instructions that the host has
  /// enqueued. The next three fields are then the position of the device.
  std::atomic<uint32_t> isBehind;
  std::atomic<uint32_t> deviceInstruction;
  std::atomic<uint64_t> deviceStep;
  std::atomic<int64_t> deviceSince;
  /// Whether a thread has begun to write the reason of a failure.
  std::atomic<uint32_t> isFailing;
  /// The state in which it failed.
  std::atomic<uint32_t> failedIn;
  /// A text that ends with a zero byte; valid when the state is Failed.
  std::array<char, 1000> reason;

  void enter(State next) {
    since.store(steadyNanoseconds(), std::memory_order_relaxed);
    state.store(next, std::memory_order_release);
  }
  void at(uint64_t newStep, uint32_t newInstruction) {
    step.store(newStep, std::memory_order_relaxed);
    instruction.store(newInstruction, std::memory_order_relaxed);
    since.store(steadyNanoseconds(), std::memory_order_relaxed);
  }
  void deviceAt(uint64_t itsStep, uint32_t itsInstruction) {
    deviceStep.store(itsStep, std::memory_order_relaxed);
    deviceInstruction.store(itsInstruction, std::memory_order_relaxed);
    deviceSince.store(steadyNanoseconds(), std::memory_order_relaxed);
    isBehind.store(1, std::memory_order_release);
  }
  void deviceIsIdle() { isBehind.store(0, std::memory_order_release); }
  /// Records a failure; only the first one of a rank is kept. Several threads
  /// of the process may call it at once.
  void fail(const std::string &text);
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_STATUS_H
