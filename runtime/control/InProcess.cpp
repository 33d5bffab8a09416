//===- InProcess.cpp - Control between threads ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"

#include "runtime/control/AbortNotifier.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

using namespace chimera::runtime;

namespace {
/// The messages from one rank to another that are not received yet.
struct Box {
  std::deque<std::vector<std::byte>> messages;
  uint64_t bytes = 0;
};

/// The state that all ranks share. `mutex` guards everything that is not
/// constant, except `notifiers`.
struct Hub {
  explicit Hub(uint32_t ranks) : ranks(ranks), notifiers(ranks) {}

  const uint32_t ranks;
  std::vector<AbortNotifier> notifiers; ///< by rank; has its own locks
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<uint32_t, uint32_t>, Box> boxes; ///< by sender, receiver
  bool aborted = false;
  std::string reason;
};

class InProcess final : public Control {
public:
  InProcess(std::shared_ptr<Hub> hub, uint32_t self)
      : hub(std::move(hub)), self(self) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return hub->ranks; }

  void send(uint32_t to, ConstBytes bytes,
            std::chrono::milliseconds timeout) override {
    std::unique_lock lock(hub->mutex);
    Box &box = hub->boxes[{self, checked(to)}];
    box.messages.emplace_back(bytes.begin(), bytes.end());
    box.bytes += bytes.size();
    hub->changed.notify_all();
    waitUntil(
        lock, [&] { return box.bytes <= kUnread; }, timeout,
        [&] { return "rank " + std::to_string(to) + " to receive"; });
  }

  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override {
    std::unique_lock lock(hub->mutex);
    Box &box = hub->boxes[{checked(from), self}];
    waitUntil(
        lock, [&] { return !box.messages.empty(); }, timeout,
        [&] { return "rank " + std::to_string(from) + " to send"; });
    std::vector<std::byte> message = std::move(box.messages.front());
    box.messages.pop_front();
    box.bytes -= message.size();
    hub->changed.notify_all();
    if (message.size() != bytes.size())
      throw std::invalid_argument("receive from rank " + std::to_string(from) +
                                  ": expected " + std::to_string(bytes.size()) +
                                  " bytes at the other end, got " +
                                  std::to_string(message.size()));
    std::ranges::copy(message, bytes.begin());
  }

  void abort(const std::string &reason) override {
    {
      std::lock_guard lock(hub->mutex);
      if (hub->aborted)
        return;
      hub->aborted = true;
      hub->reason = reason;
    }
    hub->changed.notify_all();
    for (AbortNotifier &each : hub->notifiers)
      each.notify(reason);
  }

  void onAbort(AbortNotifier::Handler handler) override {
    hub->notifiers[self].setHandler(std::move(handler));
  }

private:
  uint32_t checked(uint32_t peer) const {
    if (peer >= hub->ranks)
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(hub->ranks) + ", got " +
                                  std::to_string(peer));
    return peer;
  }

  template <typename Done, typename What>
  void waitUntil(std::unique_lock<std::mutex> &lock, Done done,
                 std::chrono::milliseconds timeout, What what) {
    constexpr std::chrono::milliseconds kLook(50);
    Deadline deadline(timeout);
    while (!hub->changed.wait_for(lock, kLook,
                                  [&] { return hub->aborted || done(); }))
      if (deadline.passed())
        throw WaitError(WaitError::Reason::TimedOut,
                        timeoutMessage(timeout, what()));
    if (hub->aborted)
      throw WaitError(WaitError::Reason::Aborted, "aborted: " + hub->reason);
  }

  std::shared_ptr<Hub> hub;
  uint32_t self;
};
} // namespace

std::vector<std::unique_ptr<Control>>
chimera::runtime::makeInProcessControls(uint32_t ranks) {
  auto hub = std::make_shared<Hub>(ranks);
  std::vector<std::unique_ptr<Control>> controls;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    controls.push_back(std::make_unique<InProcess>(hub, rank));
  return controls;
}
