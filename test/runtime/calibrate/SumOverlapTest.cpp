//===- SumOverlapTest.cpp - What computation hides of an all-reduce ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumOverlap.h"

#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr std::chrono::milliseconds kSum{10};

/// Channels of one rank whose all-reduces take at least kSum: from when they
/// begin, or from when the rank waits for them.
class SlowSums : public Channels {
public:
  SlowSums(Channels &channels, bool doBlock)
      : channels(channels), doBlock(doBlock) {}
  uint32_t rank() const override { return channels.rank(); }
  uint32_t ranks() const override { return channels.ranks(); }
  void prepare(const Communication &communication) override {
    channels.prepare(communication);
  }
  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event after) override {
    return channels.postSend(to, bytes, after);
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event after) override {
    return channels.postReceive(from, bytes, after);
  }
  std::unique_ptr<Request> handOver(uint32_t to, Block &memory, uint64_t size,
                                    Event after) override {
    return channels.handOver(to, memory, size, after);
  }
  std::unique_ptr<Request> takeOver(uint32_t from, Block &memory, uint64_t size,
                                    Event after) override {
    return channels.takeOver(from, memory, size, after);
  }
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event after) override {
    end = std::chrono::steady_clock::now() + kSum;
    return channels.startAllReduce(group, type, std::move(contributions), sum,
                                   after);
  }
  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    if (doBlock)
      std::this_thread::sleep_for(kSum);
    else
      std::this_thread::sleep_until(end);
    channels.wait(queue, std::move(request), timeout);
  }
  void abort(const std::string &reason) override { channels.abort(reason); }

private:
  Channels &channels;
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
                              /*rounds=*/5, /*ahead=*/0, 30s);
      if (rank == 0)
        hidden = own;
    });
  for (std::thread &thread : threads)
    thread.join();
  return hidden;
}

TEST(HiddenPart, IsNoneOfASumThatBlocks) {
  EXPECT_LE(hiddenPartOf(/*doBlock=*/true), 0.3);
}

TEST(HiddenPart, IsAllOfASumThatGoesOn) {
  EXPECT_GE(hiddenPartOf(/*doBlock=*/false), 0.7);
}
} // namespace
