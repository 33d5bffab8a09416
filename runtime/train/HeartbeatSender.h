//===- HeartbeatSender.h - Heartbeats while the root works ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Heartbeats of the root. After the last step, the root gathers, saves and
// evaluates, for an unlimited time. The other ranks cannot limit the time of
// that work, but they can limit the time for which the root is silent. The root
// sends each of them a heartbeat four times per timeout, and a last one when it
// is done. If the root is stopped, dead or unreachable, heartbeats stop, on any
// host.
//
// The root's own thread sends the heartbeats, because only this thread may call
// MPI. A second thread does the work. Work hangs if, for a whole timeout, its
// thread has used no CPU time and has waited for neither a core nor a device.
// So a pipe that nobody reads ends a run, but a slow disk does not.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_HEARTBEATSENDER_H
#define CHIMERA_RUNTIME_TRAIN_HEARTBEATSENDER_H

#include "runtime/control/Control.h"

#include <exception>
#include <functional>

namespace chimera::runtime {

/// The heartbeats that the root sends. After the first heartbeat, the root must
/// not send other messages until sendLast has returned.
class HeartbeatSender {
public:
  /// `control` must outlive this object.
  HeartbeatSender(Control &control, std::chrono::milliseconds timeout);

  /// Sends a heartbeat if it is time for one, without waiting until it is
  /// received. If sending fails, sendLast throws the error.
  void sendIfDue();

  /// Calls `work` on another thread and sends heartbeats until it returns. If
  /// no thread can be created, calls `work` on this thread, without heartbeats.
  /// Throws what `work` throws. If the work hangs, calls `onHang` once with the
  /// reason. If `onHang` returns, continues to wait for the work.
  void
  runWithHeartbeats(const std::function<void()> &work,
                    const std::function<void(const std::string &)> &onHang);

  /// Tells the other ranks that the root is done and waits until all have
  /// received it. Throws the error of a heartbeat that could not be sent, or
  /// WaitError if a rank does not receive the message in time. Must be called
  /// once, as the last call.
  void sendLast();

private:
  using Clock = std::chrono::steady_clock;

  Control &control;
  const std::chrono::milliseconds timeout;
  const std::chrono::milliseconds period;
  Clock::time_point next;
  std::exception_ptr failure;
};

/// Called by all other ranks. Returns when `root` has sent its last heartbeat.
/// Throws WaitError if no heartbeat comes for `timeout`. The first heartbeat
/// may take half a second longer.
void awaitLastHeartbeat(Control &control, uint32_t root,
                        std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_HEARTBEATSENDER_H
