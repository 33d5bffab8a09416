//===- message_times.cpp - What a message costs two ranks -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures, over MPI, the three times that the simulator asks for, with as many
// ranks, and as many of them at once, as a pipeline has. Prints them as JSON,
// in nanoseconds.
//
// Ranks sleep, as they compute in a pipeline, and now and then one has a
// message for its neighbour, who posted its receive long before and either
// waits for it already (its end then tells what the message takes altogether)
// or comes later (the wait then tells how long the receiver's own thread is
// busy with it). What the sender itself spends is its post and, after more
// sleep, its wait.
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Session.h"
#include "runtime/control/Messages.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/control/tcp/Meeting.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/train/Gather.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr int64_t kMillisecond = 1'000'000;
// Of a round: when its sender is done computing, how much earlier or later its
// receiver is, how far pairs are apart, and when the sender looks after its
// message.
constexpr int64_t kSend = 6 * kMillisecond, kApart = 3 * kMillisecond,
                  kSpread = 2 * kMillisecond, kLook = 14 * kMillisecond,
                  kRound = 16 * kMillisecond;

void sleepUntil(int64_t nanoseconds) {
  int64_t left = nanoseconds - steadyNanoseconds();
  if (left <= 0)
    return;
  timespec time{left / 1'000'000'000, left % 1'000'000'000};
  nanosleep(&time, nullptr);
}

struct Times {
  std::vector<int64_t> send;    ///< the sender's thread
  std::vector<int64_t> whole;   ///< from the sender's end to the receiver's go
  std::vector<int64_t> receive; ///< the receiver's thread
};

void measure(Control &control, Channels &channels, uint64_t bytes, int rounds,
             Times &times) {
  // As a pipeline has several micro-batches under way.
  constexpr size_t kBuffers = 4;
  std::vector<std::vector<std::byte>> buffers(kBuffers,
                                              std::vector<std::byte>(bytes));
  uint32_t self = channels.rank(), ranks = channels.ranks();
  int64_t begin = 0;
  if (self == 0) {
    begin = steadyNanoseconds() + 50 * kMillisecond;
    for (uint32_t rank = 1; rank < ranks; ++rank)
      sendValue(control, rank, begin, kForever);
  } else {
    begin = receiveValue<int64_t>(control, 0, kForever);
  }
  for (int round = 0; round < rounds; ++round, begin += kRound) {
    uint32_t first = static_cast<uint32_t>(round) % 2;
    if (self < first)
      continue;
    uint32_t pair = (self - first) / 2;
    bool isLower = (self - first) % 2 == 0;
    uint32_t peer = isLower ? self + 1 : self - 1;
    if (peer >= ranks)
      continue;
    bool isSender = isLower == (round / 2 % 2 == 0);
    bool isLate = (static_cast<uint32_t>(round / 4) + pair) % 2;
    // Equal at both ends.
    std::mt19937 random(static_cast<uint32_t>(round) * ranks + pair);
    int64_t send = begin + kSend + int64_t(random() % kSpread);
    std::span<std::byte> buffer = buffers[round % kBuffers];
    if (isSender) {
      sleepUntil(send);
      int64_t posted = steadyNanoseconds();
      std::memcpy(buffer.data(), &posted, sizeof(posted));
      auto request = channels.postSend(peer, buffer);
      int64_t own = steadyNanoseconds() - posted;
      sleepUntil(begin + kLook);
      int64_t looked = steadyNanoseconds();
      channels.wait(hostQueue(), std::move(request), kForever);
      times.send.push_back(own + steadyNanoseconds() - looked);
    } else {
      auto request = channels.postReceive(peer, buffer);
      sleepUntil(isLate ? send + kApart : send - kApart);
      int64_t came = steadyNanoseconds();
      channels.wait(hostQueue(), std::move(request), kForever);
      int64_t went = steadyNanoseconds(), posted = 0;
      std::memcpy(&posted, buffer.data(), sizeof(posted));
      // A sleep may have been too long by all that they are apart.
      if (came < posted)
        times.whole.push_back(went - posted);
      else if (came > posted + kApart / 2)
        times.receive.push_back(went - came);
    }
  }
}

/// Those of all ranks, at rank 0.
std::vector<int64_t> gather(Control &control, const std::vector<int64_t> &own) {
  std::vector<uint64_t> counts =
      gatherValues(control, 0, uint64_t(own.size()), kForever);
  if (control.rank() != 0) {
    sendAll(control, 0, std::as_bytes(std::span(own)), kForever);
    return {};
  }
  std::vector<int64_t> all = own;
  for (uint32_t rank = 1; rank < control.ranks(); ++rank) {
    std::vector<int64_t> more(counts[rank]);
    receiveAll(control, rank, std::as_writable_bytes(std::span(more)),
               kForever);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures what a message costs its two ranks, over MPI, as JSON "
               "in nanoseconds.",
               "message_times");
  uint64_t bytes = 64 * 1024;
  int rounds = 64;
  app.add_option("--bytes", bytes, "Of a message")
      ->check(CLI::Range(uint64_t(8), uint64_t(1) << 30))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "Of 16 ms each")
      ->check(CLI::Range(8, 1'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  MpiSession session;
  if (session.ranks() < 2 || session.hostRanks().size() != session.ranks()) {
    // Clocks of different hosts say nothing of each other.
    std::fprintf(stderr, "message_times: expected at least 2 ranks, all on one "
                         "host\n");
    _exit(1);
  }
  std::unique_ptr<Channels> channels = session.makeChannels();
  Listener listener;
  Meeting meeting(session.rank(),
                  session.exchange(Entry::own(listener.port, "").text()));
  TcpControl control(meeting.book, std::move(listener), kForever);
  Times times;
  measure(control, *channels, bytes, rounds, times);
  nlohmann::ordered_json result{{"ranks", session.ranks()}, {"bytes", bytes}};
  for (const auto &[name, own] : {std::pair("send", &times.send),
                                  {"whole", &times.whole},
                                  {"receive", &times.receive}}) {
    Durations durations;
    for (int64_t ns : gather(control, *own))
      durations.add(ns);
    if (durations.count())
      result[name] = {{"count", durations.count()},
                      {"median", durations.median()},
                      {"min", durations.least()},
                      {"max", durations.most()}};
  }
  if (session.rank() == 0)
    std::printf("%s\n", result.dump().c_str());
  return 0;
}
