//===- HeartbeatSender.cpp - Heartbeats while the root works --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/HeartbeatSender.h"

#include "runtime/control/Messages.h"
#include "runtime/system/Deadline.h"
#include "runtime/watch/Processes.h"
#include "runtime/watch/Report.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;
using std::chrono::milliseconds;

namespace {
enum class Message : uint8_t { Works, IsDone };

/// The number of heartbeats per timeout.
constexpr int kBeatsPerTimeout = 4;

/// Sends the message to all other ranks. It has a single byte, so this does not
/// wait for the receivers (see Control::send).
void send(Control &control, Message message, milliseconds timeout) {
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != control.rank())
      sendValue(control, rank, message, timeout);
}

/// A thread that does the root's work.
class Worker {
public:
  explicit Worker(const std::function<void()> &work)
      : thread([this, &work] {
          number.store(gettid());
          std::exception_ptr thrown;
          try {
            work();
          } catch (...) {
            thrown = std::current_exception();
          }
          std::lock_guard lock(mutex);
          error = thrown;
          hasEnded = true;
          ended.notify_all();
        }) {}
  ~Worker() {
    if (thread.joinable())
      thread.join();
  }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  bool endsWithin(milliseconds time) {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, time, [this] { return hasEnded; });
  }

  /// Whether the thread has used CPU time since the last call, or is waiting
  /// for a core or a device.
  bool moves() {
    clockid_t clock;
    timespec now{};
    if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 ||
        clock_gettime(clock, &now) != 0)
      return true; // it has not started yet, or has ended
    bool hasComputed =
        now.tv_sec != computed.tv_sec || now.tv_nsec != computed.tv_nsec;
    computed = now;
    return hasComputed || !isAsleep(number.load());
  }

  /// Waits for the end of the thread. Throws what the work threw.
  void finish() {
    thread.join();
    if (error)
      std::rethrow_exception(error);
  }

private:
  std::mutex mutex;
  std::condition_variable ended;
  bool hasEnded = false;    // guarded by mutex
  std::exception_ptr error; // set before hasEnded
  std::atomic<int32_t> number{0};
  timespec computed{};
  std::thread thread; // last, since it uses the other members
};
} // namespace

HeartbeatSender::HeartbeatSender(Control &control, milliseconds timeout)
    : control(control), timeout(std::min<milliseconds>(timeout, kForever)),
      period(std::max(this->timeout / kBeatsPerTimeout, milliseconds(1))),
      next(Clock::now() + period) {}

void HeartbeatSender::sendIfDue() {
  if (failure || Clock::now() < next)
    return;
  next = Clock::now() + period;
  try {
    send(control, Message::Works, timeout);
  } catch (...) {
    failure = std::current_exception();
  }
}

void HeartbeatSender::runWithHeartbeats(
    const std::function<void()> &work,
    const std::function<void(const std::string &)> &onHang) {
  std::optional<Worker> worker;
  try {
    worker.emplace(work);
  } catch (const std::system_error &) {
    // No thread could be created. Work without heartbeats, because otherwise
    // the results of the whole run would be lost.
    return work();
  }
  constexpr milliseconds kLook(200);
  Deadline patience(timeout);
  bool hangs = false;
  while (!worker->endsWithin(std::min(period, kLook))) {
    sendIfDue();
    if (worker->moves()) {
      patience = Deadline(timeout);
    } else if (!hangs && patience.passed()) {
      hangs = true;
      runOrEnd("reporting that saving hangs", [&] {
        onHang(timeoutMessage(timeout, "progress of its saving"));
      });
    }
  }
  worker->finish();
}

void HeartbeatSender::sendLast() {
  if (failure)
    std::rethrow_exception(failure);
  send(control, Message::IsDone, timeout);
  for (uint32_t rank = 0; rank < control.ranks(); ++rank)
    if (rank != control.rank())
      receiveValue<Message>(control, rank, timeout);
}

void chimera::runtime::awaitLastHeartbeat(Control &control, uint32_t root,
                                          milliseconds timeout) try {
  // Wait longer for the first heartbeat. Before it, the root waits for other
  // ranks while it gathers. If one of them is missing, the root's error should
  // come first, because it names that rank.
  milliseconds patience = watcherTimeout(timeout);
  while (receiveValue<Message>(control, root, patience) != Message::IsDone)
    patience = timeout;
  sendValue(control, root, Message::IsDone, timeout);
} catch (const WaitError &error) {
  if (error.reason != WaitError::Reason::TimedOut)
    throw;
  throw WaitError(
      error.reason,
      timeoutMessage(timeout, "a heartbeat of rank " + std::to_string(root) +
                                  ", which gathers, saves and evaluates"));
}
