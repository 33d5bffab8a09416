//===- overlap.cpp - The overlap of communication with work ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks exchange data, or work, or work between the posts and the waits of
// the exchange. The exchange is a message in each direction or an all-reduce:
// the ordered one or MPI's. The work is a sleep, like a stage on another
// device, or a computation. All of these run with and without progress threads,
// in turns. Prints, as JSON, the milliseconds of the slower rank in each round.
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Session.h"
#include "runtime/device/Host.h"
#include "tools/CommandLine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
constexpr std::chrono::seconds kTimeout(60);
const ReduceGroup kEveryone{0, {0, 1}};

using Clock = std::chrono::steady_clock;
double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

/// Arithmetic that no compiler removes. Returns its milliseconds.
double compute(uint64_t turns) {
  Clock::time_point begin = Clock::now();
  volatile uint64_t sink = 1;
  uint64_t x = sink;
  for (uint64_t i = 0; i < turns; ++i)
    x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
  return millisecondsSince(begin);
}

enum class Exchange { Message, AllReduce };

struct Rank {
  Channels &channels;
  Exchange kind;
  std::vector<float> out, in;

  uint32_t peer() const { return 1 - channels.rank(); }

  /// The larger of the two ranks' values. The exchange is also a barrier.
  double larger(double own) {
    double other = 0;
    auto receive = channels.postReceive(
        peer(), std::as_writable_bytes(std::span(&other, 1)));
    auto send = channels.postSend(peer(), std::as_bytes(std::span(&own, 1)));
    channels.wait(hostQueue(), std::move(receive), kTimeout);
    channels.wait(hostQueue(), std::move(send), kTimeout);
    return std::max(own, other);
  }

  /// Posts the exchange. An all-reduce overwrites its contribution with the
  /// sum, as in programs.
  std::vector<std::unique_ptr<Request>> post() {
    std::vector<std::unique_ptr<Request>> requests;
    Bytes here = std::as_writable_bytes(std::span(in));
    if (kind == Exchange::Message) {
      requests.push_back(channels.postReceive(peer(), here));
      requests.push_back(
          channels.postSend(peer(), std::as_bytes(std::span(out))));
    } else {
      requests.push_back(channels.startAllReduce(
          kEveryone, ElementType::Float32, {here}, here));
    }
    return requests;
  }

  /// A barrier that both ranks leave at the same time. Without it, a message
  /// might arrive before its receive is posted, and the post would move the
  /// bytes. In a program, receives are posted earlier.
  void barrier() {
    constexpr std::chrono::microseconds kLater(100);
    Clock::time_point begin{std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(
            larger(millisecondsSince({}))))};
    while (Clock::now() < begin + kLater)
      ;
  }

  /// Posts the exchange, runs `work`, and waits for the exchange. Returns the
  /// total milliseconds.
  double exchange(const std::function<void()> &work) {
    std::ranges::fill(in, kind == Exchange::Message ? 0.f : 1.f);
    barrier();
    Clock::time_point begin = Clock::now();
    std::vector<std::unique_ptr<Request>> requests = post();
    channels.beginComputing();
    work();
    for (std::unique_ptr<Request> &request : requests)
      channels.wait(hostQueue(), std::move(request), kTimeout);
    return larger(millisecondsSince(begin));
  }

  bool gotAll() const {
    float each = kind == Exchange::Message ? 1 : 2;
    return in == std::vector<float>(in.size(), each);
  }
};

/// Measures the exchange alone, the work alone, and both together. `work`
/// returns its own milliseconds.
void measure(Rank &rank, const std::function<double()> &work,
             nlohmann::json &row) {
  row["exchange"].push_back(rank.exchange([] {}));
  rank.barrier();
  row["work"].push_back(rank.larger(work()));
  double within = 0;
  row["both"].push_back(rank.exchange([&] { within = work(); }));
  row["work_within"].push_back(rank.larger(within));
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Measures how much of an exchange of messages overlaps with work, "
      "as JSON in milliseconds.",
      "overlap");
  uint64_t bytes = 16 << 20;
  int rounds = 20;
  double milliseconds = 25;
  app.add_option("--bytes", bytes, "Of a message or a sum, in whole floats")
      ->check(CLI::Range(sizeof(float), uint64_t(1) << 30))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "Of all there is to measure")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--work", milliseconds, "Milliseconds of it")
      ->check(chimera::within(0.01, 1e4))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const std::unique_ptr<MpiSession> mpi = startMpi(MpiThreads::Multiple);
  MpiSession &session = *mpi;
  if (session.ranks() != 2) {
    std::fprintf(stderr, "overlap: expected 2 ranks, got %u\n",
                 session.ranks());
    _exit(1);
  }

  // The number of loop iterations that take the wanted time if nothing else
  // runs on the core.
  constexpr uint64_t kTurns = 1'000'000;
  double fastest = 1e9;
  for (int i = 0; i < 10; ++i)
    fastest = std::min(fastest, compute(kTurns));
  auto turns = static_cast<uint64_t>(kTurns * milliseconds / fastest);
  const std::function<double()> works[] = {
      [&] {
        Clock::time_point begin = Clock::now();
        std::this_thread::sleep_for(
            std::chrono::duration<double, std::milli>(milliseconds));
        return millisecondsSince(begin);
      },
      [&] { return compute(turns); }};

  constexpr struct {
    const char *name;
    Exchange kind;
    bool byMpi;
  } kExchanges[] = {{"messages", Exchange::Message, false},
                    {"ordered all-reduce", Exchange::AllReduce, false},
                    {"all-reduce of MPI", Exchange::AllReduce, true}};

  std::vector<std::unique_ptr<Channels>> channels;
  std::vector<Rank> ranks;
  nlohmann::json rows;
  for (const auto &exchange : kExchanges)
    for (bool progress : {false, true}) {
      channels.push_back(session.makeChannels(
          {.progressThread = progress, .transportAllReduce = exchange.byMpi}));
      channels.back()->prepare({.pairs = {}, .groups = {kEveryone}});
      size_t elements = bytes / sizeof(float);
      ranks.push_back({*channels.back(), exchange.kind,
                       std::vector<float>(elements, 1),
                       std::vector<float>(elements)});
      for (const char *work : {"sleeping", "busy"})
        rows.push_back({{"exchange_of", exchange.name},
                        {"kind", work},
                        {"progress", progress}});
    }
  for (int round = -1; round < rounds; ++round)
    for (size_t i = 0; i < rows.size(); ++i) {
      nlohmann::json warmUp;
      measure(ranks[i / 2], works[i % 2], round < 0 ? warmUp : rows[i]);
    }
  for (const Rank &rank : ranks)
    if (!rank.gotAll()) {
      std::fprintf(stderr, "overlap: an exchange brought wrong bytes\n");
      _exit(1);
    }
  if (session.rank() == 0)
    std::printf("%s\n", rows.dump().c_str());
  return 0;
}
