//===- MessageTimes.cpp - Costs of a message ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MessageTimes.h"

#include "runtime/calibrate/Fit.h"
#include "runtime/control/Messages.h"
#include "runtime/interpreter/Status.h"

#include <algorithm>
#include <map>
#include <random>

using namespace chimera::runtime;

namespace {
// Times within a round. kSend: the sender sends. kApart: the receiver waits
// this much earlier or later. kSpread: a random delay of the send. kLook: the
// sender waits for its message. kRound: the length of the round.
constexpr int64_t kSend = 6 * kMillisecond, kApart = 3 * kMillisecond,
                  kSpread = 2 * kMillisecond, kLook = 14 * kMillisecond,
                  kRound = 16 * kMillisecond;

/// Returns the values of all ranks at rank 0.
std::vector<int64_t> gather(Control &control, const std::vector<int64_t> &own,
                            std::chrono::milliseconds timeout) {
  std::vector<uint64_t> counts =
      gatherValues(control, 0, uint64_t(own.size()), timeout);
  if (control.rank() != 0) {
    sendLarge(control, 0, std::as_bytes(std::span(own)), timeout);
    return {};
  }
  std::vector<int64_t> all = own;
  for (uint32_t rank = 1; rank < control.ranks(); ++rank) {
    std::vector<int64_t> more(counts[rank]);
    receiveLarge(control, rank, std::as_writable_bytes(std::span(more)),
                 timeout);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// The messages between this rank and a neighbour, in the order of the rounds.
struct Passed {
  /// The times at which this rank's messages began, by rank 0's clock.
  std::vector<int64_t> begins;
  struct Receive {
    int64_t came, ended; ///< begin and end of the wait, by rank 0's clock
    int64_t occupied;    ///< duration of the wait, if `isLate`
    bool isLate;
  };
  std::vector<Receive> receives;
};

/// Exchanges the beginnings of messages with `peer`. Returns the times at which
/// the messages of `peer` began, one for each receive of this rank.
std::vector<int64_t> exchangeBegins(Control &control, uint32_t peer,
                                    const Passed &passed,
                                    std::chrono::milliseconds timeout) {
  std::vector<int64_t> begins(passed.receives.size());
  auto send = [&] {
    sendLarge(control, peer, std::as_bytes(std::span(passed.begins)), timeout);
  };
  // The lower rank sends first and the higher rank receives first. This order
  // avoids a deadlock if there are more bytes than Control::kUnread.
  if (control.rank() < peer)
    send();
  receiveLarge(control, peer, std::as_writable_bytes(std::span(begins)),
               timeout);
  if (control.rank() > peer)
    send();
  return begins;
}
} // namespace

void chimera::runtime::sleepUntil(int64_t nanoseconds) {
  int64_t left = nanoseconds - steadyNanoseconds();
  if (left <= 0)
    return;
  timespec time{left / 1'000'000'000, left % 1'000'000'000};
  nanosleep(&time, nullptr);
}

int64_t chimera::runtime::agreeOnBegin(Control &control,
                                       std::chrono::milliseconds later,
                                       std::chrono::milliseconds timeout) {
  barrier(control, timeout, "all ranks to measure");
  if (control.rank() != 0)
    return receiveValue<int64_t>(control, 0, timeout);
  const int64_t begin = steadyNanoseconds() + later.count() * kMillisecond;
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    sendValue(control, rank, begin, timeout);
  return begin;
}

double MessageCost::transit() const {
  return std::max(0.0, whole - send - receive);
}

MessageCost chimera::runtime::costOf(const MessageTimes &times) {
  // If there are few rounds, one direction may have no messages. Then use only
  // the other direction.
  const double whole = times.up.empty() ? medianOf(times.down)
                       : times.down.empty()
                           ? medianOf(times.up)
                           : (medianOf(times.up) + medianOf(times.down)) / 2;
  return {medianOf(times.send), whole, medianOf(times.receive)};
}

void chimera::runtime::measureMessages(
    Control &control, Channels &channels, MeasuredQueue &queue,
    const MessageRounds &of,
    const std::function<MessageTimes &(uint32_t peer)> &timesWith) {
  // There are several buffers because a pipeline has several micro-batches in
  // flight. As in a run, channels may exchange the memory of the buffers.
  constexpr size_t kBuffers = 4;
  std::vector<Block> buffers;
  for (size_t i = 0; i < kBuffers; ++i)
    buffers.push_back(queue.zeros(of.bytes));
  const uint32_t self = channels.rank(), ranks = channels.ranks();
  std::map<uint32_t, Passed> passedWith;
  int64_t begin =
      agreeOnBegin(control, std::chrono::milliseconds(50), of.timeout) +
      of.clockAhead;
  for (int round = 0; round < of.rounds; ++round, begin += kRound * of.scale) {
    uint32_t first = static_cast<uint32_t>(round) % 2;
    if (self < first)
      continue;
    uint32_t pair = (self - first) / 2;
    bool isLower = (self - first) % 2 == 0;
    uint32_t peer = isLower ? self + 1 : self - 1;
    if (peer >= ranks)
      continue;
    Passed &passed = passedWith[peer];
    bool isSender = isLower == (round / 2 % 2 == 0);
    bool isLate = (static_cast<uint32_t>(round / 4) + pair) % 2;
    // Both ends use the same seed, so they get the same number without a
    // message.
    std::mt19937 random(static_cast<uint32_t>(round) * ranks + pair);
    const int64_t send =
        begin + of.scale * (kSend + int64_t(random() % kSpread));
    const int64_t apart = of.scale * kApart;
    Block &buffer = buffers[round % kBuffers];
    if (isSender) {
      sleepUntil(send);
      const Moment made = queue.afterWork();
      auto request = channels.postSendBlock(peer, buffer, of.bytes, made.event);
      // If the device executes later, a post puts nothing on the queue, so it
      // takes none of the queue's time.
      const int64_t own =
          queue.isSynchronous() ? steadyNanoseconds() - made.byHost : 0;
      passed.begins.push_back(queue.timeOf(made) - of.clockAhead);
      sleepUntil(begin + of.scale * kLook);
      timesWith(peer).send.push_back(own + queue.timeOccupiedBy([&] {
        channels.wait(queue.get(), std::move(request), of.timeout);
      }));
      continue;
    }
    auto request = channels.postReceiveBlock(peer, buffer, of.bytes);
    auto wait = [&] {
      channels.wait(queue.get(), std::move(request), of.timeout);
    };
    sleepUntil(isLate ? send + apart : send - apart);
    Passed::Receive receive{.came = steadyNanoseconds() - of.clockAhead,
                            .ended = 0,
                            .occupied = 0,
                            .isLate = isLate};
    if (isLate)
      receive.occupied = queue.timeOccupiedBy(wait);
    else
      wait();
    const Moment ended = queue.recordPoint();
    receive.ended = queue.timeOf(ended) - of.clockAhead;
    passed.receives.push_back(receive);
  }
  // Every rank begins with its lower neighbour, so there is no cycle of waits.
  for (const auto &[peer, passed] : passedWith) {
    const std::vector<int64_t> begins =
        exchangeBegins(control, peer, passed, of.timeout);
    MessageTimes &times = timesWith(peer);
    for (size_t i = 0; i < begins.size(); ++i) {
      const Passed::Receive &receive = passed.receives[i];
      // If a sleep lasted too long, the receiver was not early or late as
      // planned. Drop such a round.
      if (!receive.isLate && receive.came < begins[i])
        (self < peer ? times.down : times.up)
            .push_back(receive.ended - begins[i]);
      else if (receive.isLate &&
               receive.came > begins[i] + of.scale * kApart / 2)
        times.receive.push_back(receive.occupied);
    }
  }
}

MessageTimes chimera::runtime::gatherTimes(Control &control,
                                           const MessageTimes &own,
                                           std::chrono::milliseconds timeout) {
  return {gather(control, own.send, timeout), gather(control, own.up, timeout),
          gather(control, own.down, timeout),
          gather(control, own.receive, timeout)};
}
