//===- SumOverlapTest.cpp - Computation that overlaps with an all-reduce --===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumOverlap.h"

#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/calibrate/ForwardingChannels.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr std::chrono::milliseconds kSum{20};

/// Channels whose all-reduces take at least kSum. The time begins at the start
/// of the all-reduce or, if `doBlock`, when the rank begins to wait.
class SlowSums : public ForwardingChannels {
public:
  SlowSums(Channels &channels, bool doBlock)
      : ForwardingChannels(channels), doBlock(doBlock) {}
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event after) override {
    end = std::chrono::steady_clock::now() + kSum;
    return ForwardingChannels::startAllReduce(
        group, type, std::move(contributions), sum, after);
  }
  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    if (doBlock)
      std::this_thread::sleep_for(kSum);
    else
      std::this_thread::sleep_until(end);
    ForwardingChannels::wait(queue, std::move(request), timeout);
  }

private:
  const bool doBlock;
  std::chrono::steady_clock::time_point end;
};

double hiddenPartOf(bool doBlock) {
  constexpr uint32_t kRanks = 2;
  const ReduceGroup group{0, {0, 1}};
  auto controls = makeInProcessControls(kRanks);
  auto channels = makeInProcessChannels(kRanks);
  double hidden = -1;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      SlowSums slow(*channels[rank], doBlock);
      slow.prepare({.pairs = {}, .groups = {group}});
      double own = hiddenPart(*controls[rank], slow, group, /*bytes=*/64,
                              /*budget=*/1s, /*clockAhead=*/0, 30s);
      if (rank == 0)
        hidden = own;
    });
  for (std::thread &thread : threads)
    thread.join();
  return hidden;
}

/// Expects that computation hides the all-reduce or, if `doBlock`, does not
/// hide it. Repeats the measurement if it fails, because other processes may
/// disturb it.
void expectHidden(bool doBlock) {
  test::retryUntilSuccess(0ms, [&](auto) -> std::string {
    double hidden = hiddenPartOf(doBlock);
    return (doBlock ? hidden < 0.3 : hidden >= 0.7)
               ? ""
               : "hidden: " + std::to_string(hidden);
  });
}

TEST(HiddenPart, IsZeroForABlockingSum) { expectHidden(/*doBlock=*/true); }

TEST(HiddenPart, IsOneForASumThatProgresses) {
  expectHidden(/*doBlock=*/false);
}
} // namespace
