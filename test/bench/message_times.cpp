//===- message_times.cpp - The cost of a message between two ranks --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures, over MPI, the three times of a message that the simulator needs
// (runtime/calibrate/MessageTimes.h), for messages of one size. Prints them as
// JSON, in nanoseconds. chimera-run --calibrate fits a line to the times of
// many sizes, so its times have an error. This program prints the measured
// times.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/channel/mpi/Session.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/control/tcp/PeerExchange.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/system/Deadline.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace chimera;
using namespace chimera::runtime;

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

  const std::unique_ptr<MpiSession> mpi = startMpi();
  MpiSession &session = *mpi;
  if (session.ranks() < 2 || session.hostRanks().size() != session.ranks()) {
    // The ranks must share a clock, so they must be on one host.
    std::fprintf(stderr, "message_times: expected at least 2 ranks, all on one "
                         "host\n");
    _exit(1);
  }
  std::unique_ptr<Channels> channels = session.makeChannels();
  Listener listener;
  PeerInfo peerInfo(
      session.rank(),
      session.allGatherTexts(PeerEntry::own(listener.port, "").text()));
  TcpControl control(peerInfo.peerTable, std::move(listener), kForever);
  MessageTimes own;
  const std::unique_ptr<Device> host = makeHostDevice();
  MeasuredQueue queue(*host, kForever);
  measureMessages(control, *channels, queue,
                  {.bytes = bytes, .rounds = rounds, .timeout = kForever},
                  [&](uint32_t) -> MessageTimes & { return own; });
  const MessageTimes times = gatherTimes(control, own, kForever);
  std::vector<int64_t> whole = times.up;
  whole.insert(whole.end(), times.down.begin(), times.down.end());
  nlohmann::ordered_json result{{"ranks", session.ranks()}, {"bytes", bytes}};
  for (const auto &[name, all] : {std::pair("send", &times.send),
                                  {"whole", &whole},
                                  {"receive", &times.receive}}) {
    Durations durations;
    for (int64_t ns : *all)
      durations.add(ns);
    if (durations.count())
      result[name] = {{"count", durations.count()},
                      {"median", durations.median()},
                      {"min", durations.min()},
                      {"max", durations.max()}};
  }
  if (session.rank() == 0)
    std::printf("%s\n", result.dump().c_str());
  return 0;
}
