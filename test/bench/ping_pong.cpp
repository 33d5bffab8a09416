//===- ping_pong.cpp - Messages over channels, compared with MPI's --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks send a message back and forth in three ways: through the channels,
// with MPI's own calls and MPI_Wait, and with MPI's own calls and a loop of
// MPI_Test. The three ways take turns, so that other load affects all of them
// alike. Prints, as JSON, the microseconds of one message for each size and
// round.
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Session.h"
#include "runtime/device/Host.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
constexpr std::chrono::seconds kTimeout(60);

struct Ends {
  uint32_t self;
  std::vector<std::byte> out, in;
  bool begins() const { return self == 0; }
  uint32_t peer() const { return 1 - self; }
};

void overChannels(Channels &channels, Ends &ends) {
  auto receive = channels.postReceive(ends.peer(), ends.in);
  if (!ends.begins())
    channels.wait(hostQueue(), std::move(receive), kTimeout);
  auto send = channels.postSend(ends.peer(), ends.out);
  if (ends.begins())
    channels.wait(hostQueue(), std::move(receive), kTimeout);
  channels.wait(hostQueue(), std::move(send), kTimeout);
}

/// Sends with plain MPI. `wait` waits for one request.
template <typename Wait>
void plainly(MPI_Comm communicator, Ends &ends, Wait wait) {
  auto size = static_cast<int>(ends.in.size());
  auto peer = static_cast<int>(ends.peer());
  MPI_Request receive, send;
  MPI_Irecv(ends.in.data(), size, MPI_BYTE, peer, 0, communicator, &receive);
  if (!ends.begins())
    wait(receive);
  MPI_Isend(ends.out.data(), size, MPI_BYTE, peer, 0, communicator, &send);
  if (ends.begins())
    wait(receive);
  wait(send);
}

/// Microseconds of one message: half of the time of a round trip.
template <typename Exchange>
double measure(MPI_Comm communicator, int repetitions, Exchange exchange) {
  MPI_Barrier(communicator);
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repetitions; ++i)
    exchange();
  std::chrono::duration<double, std::micro> took =
      std::chrono::steady_clock::now() - begin;
  return took.count() / repetitions / 2;
}

nlohmann::json measureSize(Channels &channels, MPI_Comm communicator,
                           uint64_t bytes, int rounds) {
  Ends ends{channels.rank(), std::vector<std::byte>(bytes, std::byte(1)),
            std::vector<std::byte>(bytes)};
  auto byWait = [&] {
    plainly(communicator, ends, [](MPI_Request &request) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  };
  auto byTest = [&] {
    plainly(communicator, ends, [](MPI_Request &request) {
      for (int flag = 0; !flag;)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    });
  };
  auto ours = [&] { overChannels(channels, ends); };

  ours();
  constexpr double kBatch = 4000; // µs
  int repetitions = static_cast<int>(
      std::clamp(kBatch / 2 / std::max(0.1, measure(communicator, 3, byTest)),
                 1.0, 5000.0));
  MPI_Bcast(&repetitions, 1, MPI_INT, 0, communicator);
  nlohmann::json row{{"bytes", bytes}};
  for (int round = 0; round < rounds; ++round) {
    row["wait"].push_back(measure(communicator, repetitions, byWait));
    row["channels"].push_back(measure(communicator, repetitions, ours));
    row["test"].push_back(measure(communicator, repetitions, byTest));
  }
  if (ends.in != ends.out) {
    std::fprintf(stderr, "ping_pong: a message came with wrong bytes\n");
    _exit(1);
  }
  return row;
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures messages between two ranks, through the channels and "
               "with MPI's own calls, as JSON in microseconds.",
               "ping_pong");
  std::vector<uint64_t> sizes;
  int rounds = 20;
  bool progress = false;
  app.add_option("--bytes", sizes, "Sizes of a message")
      ->required()
      ->check(CLI::Range(uint64_t(1), uint64_t(1) << 30));
  app.add_option("--rounds", rounds, "Of some 12 ms each, for each size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--progress", progress, "Give ranks a progress thread");
  CLI11_PARSE(app, argc, argv);

  const std::unique_ptr<MpiSession> mpi =
      startMpi(progress ? MpiThreads::Multiple : MpiThreads::Funneled);
  MpiSession &session = *mpi;
  if (session.ranks() != 2) {
    std::fprintf(stderr, "ping_pong: expected 2 ranks, got %u\n",
                 session.ranks());
    _exit(1);
  }
  std::unique_ptr<Channels> channels =
      session.makeChannels({.progressThread = progress});
  MPI_Comm communicator;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  nlohmann::json rows;
  for (uint64_t bytes : sizes)
    rows.push_back(measureSize(*channels, communicator, bytes, rounds));
  MPI_Comm_free(&communicator);
  if (session.rank() == 0)
    std::printf("%s\n", rows.dump().c_str());
  return 0;
}
