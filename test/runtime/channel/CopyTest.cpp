//===- CopyTest.cpp - CUDA calls of copies between ranks ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/cuda/Copies.h"
#include "test/runtime/channel/World.h"
#include "test/runtime/cuda/CleanGpus.h"

#include <algorithm>
#include <barrier>
#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;
using chimera::program::MessageModel;

namespace {
constexpr auto kTimeout = 100s;
using Errors = std::vector<std::string>;

class Copies : public CleanGpus {
protected:
  static size_t callsOf(const std::string &part) {
    return static_cast<size_t>(
        std::ranges::count_if(calls(), [&](const std::string &call) {
          return call.find(part) != std::string::npos;
        }));
  }
};

/// A rank, and its device as a CudaDevice.
struct GpuRank : test::Rank {
  cuda::CudaDevice &gpu;

  cudaStream_t stream() const {
    return dynamic_cast<cuda::CudaQueue &>(queue).stream();
  }
  void order(std::unique_ptr<Request> request) {
    channels.wait(queue, std::move(request), kTimeout);
  }
};
using Body = std::function<void(GpuRank &)>;

struct Ranks {
  std::vector<int> gpus = {0, 0};
  MessageModel model = MessageModel::StreamPerDevice;
  uint64_t scratchBytes = 1000;

  /// Runs `body` on a thread for each rank. Returns the messages of the
  /// exceptions, by rank.
  Errors run(const Body &body) const {
    const auto count = static_cast<uint32_t>(gpus.size());
    auto hub = std::make_shared<local::Hub>(count);
    Communication all = communicationAmong(count);
    all.model = model;
    Errors errors(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        try {
          cuda::CudaDevice device({.ordinal = gpus[rank]});
          auto channels = makeCopyChannels(
              hub, rank, device, {.gpus = gpus, .scratchBytes = scratchBytes});
          channels->prepare(all);
          auto queue = device.makeQueue("compute");
          GpuRank own{{*channels, device, *queue}, device};
          body(own);
        } catch (const std::exception &error) {
          errors[rank] = error.what();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    return errors;
  }
};
const Errors kNoErrors(2);

template <typename T>
std::unique_ptr<Request> send(GpuRank &rank, uint32_t to, Values<T> &values) {
  return rank.channels.postSend(to, values.bytes(), rank.queue.record());
}
template <typename T>
std::unique_ptr<Request> receive(GpuRank &rank, uint32_t from,
                                 Values<T> &values) {
  return rank.channels.postReceive(from, values.bytes(), rank.queue.record());
}
template <typename T>
std::unique_ptr<Request> sum(GpuRank &rank, Values<T> &values,
                             std::vector<uint32_t> contributors = {0, 1}) {
  return rank.channels.startAllReduce({0, std::move(contributors)},
                                      ElementType::UInt64, {values.bytes()},
                                      values.bytes(), rank.queue.record());
}

// All waits return, although the streams execute nothing.
TEST_F(Copies, HostsWaitForNoGpu) {
  std::barrier both(2);
  EXPECT_EQ(Ranks().run([&](GpuRank &rank) {
    const uint64_t self = rank.rank();
    Values<uint64_t> value(rank, {self + 5}), in(rank, {0});
    rank.device.waitFor(rank.queue.record(), kTimeout);
    both.arrive_and_wait();
    holdStreams(true);
    auto sending = send(rank, 1 - rank.rank(), value);
    auto receiving = receive(rank, 1 - rank.rank(), in);
    rank.order(std::move(receiving));
    rank.order(std::move(sending));
    rank.order(sum(rank, in));
    const Event done = rank.queue.record();
    EXPECT_FALSE(rank.device.isDone(done));
    both.arrive_and_wait();
    holdStreams(false);
    rank.device.waitFor(done, kTimeout);
    EXPECT_EQ(in.get()[0], 11u);
  }),
            kNoErrors);
}

TEST_F(Copies, AMessageIsCopiedOnceAndBlocksNobody) {
  std::barrier both(2);
  EXPECT_EQ(Ranks().run([&](GpuRank &rank) {
    Values<uint64_t> values(rank, std::vector<uint64_t>(100, rank.rank()));
    both.arrive_and_wait();
    recordCalls(true);
    for (int k = 0; k < 10; ++k)
      rank.order(rank.rank() == 0 ? send(rank, 1, values)
                                  : receive(rank, 0, values));
    both.arrive_and_wait();
    recordCalls(false);
    EXPECT_EQ(values.get(), std::vector<uint64_t>(100, 0));
  }),
            kNoErrors);
  EXPECT_EQ(callsOf("cudaMemcpyAsync 800 D2D"), 10u);
  EXPECT_EQ(callsOf("cudaMemcpy"), 10u);
  EXPECT_EQ(callsOf("Synchronize"), 0u);
}

// Tests four cases: the GPU of the sender or of the receiver is late, and the
// sender or the receiver posts second.
TEST_F(Copies, AMessageComesAfterBothItsEnds) {
  for (bool lateSend : {false, true})
    for (uint32_t second : {0, 1}) {
      std::barrier both(2);
      EXPECT_EQ(Ranks().run([&](GpuRank &rank) {
        const bool isSend = rank.rank() == 0;
        // The value that rank 0 sends, and the value that the memory of rank 1
        // has before the message.
        Values<uint64_t> value(rank, {isSend ? 7u : 9u}), other(rank, {1});
        rank.device.waitFor(rank.queue.record(), kTimeout);
        if (isSend == lateSend)
          enqueueOn(rank.stream(), [] { std::this_thread::sleep_for(20ms); });
        if (isSend)
          rank.queue.copy(value.bytes(), other.bytes());
        else
          rank.queue.copy(other.bytes(), value.bytes());
        if (rank.rank() == second)
          both.arrive_and_wait();
        auto request = isSend ? send(rank, 1, other) : receive(rank, 0, other);
        if (rank.rank() != second)
          both.arrive_and_wait();
        rank.order(std::move(request));
        EXPECT_EQ(other.get()[0], 7u);
        EXPECT_EQ(value.get()[0], isSend ? 7u : 1u);
      }),
                kNoErrors);
    }
}

TEST_F(Copies, StreamsAreThoseOfTheModel) {
  auto streamsOf = [](MessageModel model) {
    clearCalls();
    recordCalls(true);
    const Ranks three{.gpus = {0, 0, 0}, .model = model};
    EXPECT_EQ(three.run([](GpuRank &) {}), Errors(3));
    recordCalls(false);
    return callsOf("cudaStreamCreate") - 3; // each rank computes on one stream
  };
  EXPECT_EQ(streamsOf(MessageModel::StreamPerDevice), 3u);
  // Each of the 3 ranks has two peers, so there are 6 streams for messages.
  // Sums over all ranks have 3 streams, and sums over the first and the last
  // rank have 2. The third group has all ranks again, so it needs no further
  // stream.
  EXPECT_EQ(streamsOf(MessageModel::StreamPerPair), 6u + 3 + 2);
  EXPECT_EQ(streamsOf(MessageModel::StreamPerDirection), 12u + 3 + 2);
  EXPECT_EQ(streamsOf(MessageModel::Rendezvous), 12u + 3 + 2);
}

// The message from rank 1 waits for the GPU of rank 1. A later message, from
// rank 0 to rank 1, must not wait for the first message.
TEST_F(Copies, OnlyOrdersWhatTheModelOrders) {
  std::barrier both(2);
  std::atomic<bool> goesOn = false;
  EXPECT_EQ(
      Ranks{.model = MessageModel::StreamPerDirection}.run([&](GpuRank &rank) {
        Values<uint64_t> late(rank, {5}), soon(rank, {rank.rank()});
        const Event ready = rank.queue.record();
        rank.device.waitFor(ready, kTimeout);
        if (rank.rank() == 1) {
          enqueueOn(rank.stream(), [&] {
            while (!goesOn.load(std::memory_order_relaxed))
              std::this_thread::sleep_for(1ms);
          });
          auto sending = send(rank, 0, late);
          auto receiving = rank.channels.postReceive(0, soon.bytes(), ready);
          both.arrive_and_wait();
          rank.order(std::move(sending));
          rank.order(std::move(receiving));
          return rank.device.waitFor(rank.queue.record(), kTimeout);
        }
        both.arrive_and_wait();
        // Rank 0 enqueues both messages on streams, and the late message before
        // the other message.
        auto receiving = receive(rank, 1, late);
        rank.wait(rank.channels.postSend(1, soon.bytes(), ready), kTimeout);
        goesOn = true;
        rank.wait(std::move(receiving), kTimeout);
      }),
      kNoErrors);
}

TEST_F(Copies, ATimeoutNamesTheMissingRank) {
  Errors errors = Ranks{.gpus = {0, 0, 0}}.run([](GpuRank &rank) {
    Values<uint64_t> value(rank, {1});
    if (rank.rank() == 0)
      rank.channels.wait(rank.queue, send(rank, 1, value), 50ms);
    if (rank.rank() == 1)
      rank.channels.wait(rank.queue, receive(rank, 2, value), 50ms);
    if (rank.rank() == 2)
      rank.channels.wait(rank.queue, sum(rank, value, {0, 1, 2}), 50ms);
  });
  const std::string begin = "timed out after 0.05 s waiting for ";
  EXPECT_EQ(errors,
            (Errors{begin + "rank 1 to receive", begin + "rank 2 to send",
                    begin + "ranks 0, 1 to start an all-reduce"}));
}

TEST_F(Copies, ASizeMismatchIsReportedAtBothEnds) {
  EXPECT_EQ(Ranks().run([](GpuRank &rank) {
    Values<uint64_t> values(rank, std::vector<uint64_t>(1 + rank.rank()));
    rank.order(rank.rank() == 0 ? send(rank, 1, values)
                                : receive(rank, 0, values));
  }),
            (Errors{"send to rank 1: expected 8 bytes at the other end, got 16",
                    "receive from rank 0: expected 16 bytes at the other end, "
                    "got 8"}));
}

TEST_F(Copies, AMemberMismatchIsReported) {
  std::barrier both(2);
  Errors errors = Ranks().run([&](GpuRank &rank) {
    Values<uint64_t> values(rank, std::vector<uint64_t>(1 + rank.rank()));
    if (rank.rank() == 1)
      both.arrive_and_wait();
    auto request = sum(rank, values);
    both.arrive_and_wait();
    rank.channels.wait(rank.queue, std::move(request), 50ms);
  });
  EXPECT_EQ(errors[1], "all-reduce 0 of group 0: rank 1 starts it with another "
                       "size, type or members than the ranks before it");
}

TEST_F(Copies, RefusesUnpreparedOperations) {
  EXPECT_EQ(Ranks().run([](GpuRank &rank) {
    Values<uint64_t> value(rank, {1});
    auto channels = makeCopyChannels(std::make_shared<local::Hub>(2),
                                     rank.rank(), rank.gpu, {.gpus = {0, 0}});
    EXPECT_THROW(channels->postSend(1 - rank.rank(), value.bytes()),
                 std::logic_error);
    EXPECT_THROW(channels->startAllReduce({0, {0, 1}}, ElementType::UInt64,
                                          {value.bytes()}, value.bytes()),
                 std::logic_error);
  }),
            kNoErrors);
}

// Three ranks use two GPUs. The scratch memory is smaller than the values, so
// sums are computed in pieces.
TEST_F(Copies, AllocatesNothingAfterPreparing) {
  std::barrier all(3);
  EXPECT_EQ(
      (Ranks{.gpus = {0, 1, 0}, .scratchBytes = 2000}.run([&](GpuRank &rank) {
        Values<uint64_t> values(rank, std::vector<uint64_t>(1000, 1));
        Values<uint64_t> in(rank, std::vector<uint64_t>(1000));
        auto round = [&] {
          auto sending = send(rank, (rank.rank() + 1) % 3, values);
          rank.order(receive(rank, (rank.rank() + 2) % 3, in));
          rank.order(std::move(sending));
          rank.wait(sum(rank, values, {0, 1, 2}), kTimeout);
        };
        round(); // creates the events
        all.arrive_and_wait();
        recordCalls(true);
        for (int k = 0; k < 3; ++k)
          round();
        all.arrive_and_wait();
        recordCalls(false);
        EXPECT_EQ(values.get(), std::vector<uint64_t>(1000, 81));
        EXPECT_EQ(in.get(), std::vector<uint64_t>(1000, 27));
      })),
      Errors(3));
  for (const char *taking :
       {"cudaMalloc", "cudaHostAlloc", "cudaStreamCreate", "cudaFree"})
    EXPECT_EQ(callsOf(taking), 0u) << taking;
  EXPECT_GT(callsOf("cudaLaunchKernel chimeraFold"), 3u);
}

// The scratch memory has 1000 bytes. So a sum copies at most 768 bytes at a
// time from the other GPU.
TEST_F(Copies, SumsReadOtherGpusThroughScratch) {
  std::barrier both(2);
  for (int second : {0, 1}) {
    clearCalls();
    EXPECT_EQ((Ranks{.gpus = {0, second}}.run([&](GpuRank &rank) {
                Values<uint64_t> values(rank, std::vector<uint64_t>(300, 1));
                both.arrive_and_wait();
                recordCalls(true);
                rank.order(sum(rank, values));
                both.arrive_and_wait();
                recordCalls(false);
                EXPECT_EQ(values.get(), std::vector<uint64_t>(300, 2));
              })),
              kNoErrors);
    EXPECT_EQ(callsOf("cudaLaunchKernel chimeraFold"), second ? 4u : 1u);
    EXPECT_EQ(callsOf("cudaMemcpyAsync 768 D2D"), second ? 3u : 0u);
    EXPECT_EQ(callsOf("cudaMemcpyAsync 2400 D2D"), 1u);
  }
}

// If rank 0 has dropped its end of a message or sum, the end of rank 1 must not
// be matched with it. The wait of rank 1 times out.
TEST_F(Copies, AnEndThatIsDroppedIsNotMatched) {
  std::barrier both(2);
  Errors errors = Ranks().run([&](GpuRank &rank) {
    Values<uint64_t> value(rank, {rank.rank()});
    if (rank.rank() == 0) {
      send(rank, 1, value).reset();
      sum(rank, value).reset();
      return both.arrive_and_wait();
    }
    both.arrive_and_wait();
    EXPECT_THROW(rank.channels.wait(rank.queue, receive(rank, 0, value), 20ms),
                 WaitError);
    EXPECT_THROW(rank.channels.wait(rank.queue, sum(rank, value), 20ms),
                 WaitError);
    EXPECT_EQ(value.get()[0], 1u);
  });
  EXPECT_EQ(errors, kNoErrors);
}

// Rank 0 cancels its end while the copy is enqueued on the GPU of rank 1.
// Freeing memory of rank 0's GPU does not wait for this copy. So the memory
// must not be freed.
TEST_F(Copies, KeepsTheMemoryOfACancelledEnd) {
  for (bool isSum : {false, true}) {
    std::barrier both(2);
    Errors errors = Ranks{.gpus = {0, 1}}.run([&](GpuRank &rank) {
      auto value =
          std::make_unique<Values<uint64_t>>(rank, std::vector<uint64_t>{1});
      rank.device.waitFor(rank.queue.record(), kTimeout);
      both.arrive_and_wait();
      if (rank.rank() == 0) {
        holdStreams(true);
        auto request = isSum ? sum(rank, *value) : send(rank, 1, *value);
        both.arrive_and_wait(); // rank 0 has posted
        both.arrive_and_wait(); // rank 1 has posted
        request.reset();
        const size_t before = liveAllocations();
        value.reset();
        EXPECT_EQ(liveAllocations(), before);
        EXPECT_TRUE(rank.gpu.failed());
        both.arrive_and_wait();
        return;
      }
      both.arrive_and_wait();
      auto request = isSum ? sum(rank, *value) : receive(rank, 0, *value);
      both.arrive_and_wait();
      rank.order(std::move(request));
      both.arrive_and_wait();
      // Rank 0 waits for the copy before it frees its memory.
      std::this_thread::sleep_for(50ms);
      holdStreams(false);
      EXPECT_EQ(value->get()[0], isSum ? 2u : 1u);
    });
    EXPECT_EQ(errors, kNoErrors);
  }
}

TEST_F(Copies, ACudaErrorIsReportedByTheRankThatCopies) {
  struct Case {
    bool isSum;
    std::string call, awaited;
  };
  for (const Case &each : {Case{false, "cudaMemcpyAsync", "rank 1 to receive"},
                           Case{true, "cudaLaunchKernel",
                                "the other ranks to start an all-reduce"}}) {
    std::barrier both(2);
    Errors errors = Ranks().run([&](GpuRank &rank) {
      Values<uint64_t> value(rank, {rank.rank()});
      rank.device.waitFor(rank.queue.record(), kTimeout);
      if (rank.rank() == 0) {
        auto first = each.isSum ? sum(rank, value) : send(rank, 1, value);
        both.arrive_and_wait(); // rank 0 has posted
        both.arrive_and_wait(); // rank 1 has failed
        rank.channels.wait(rank.queue, std::move(first), 100ms);
      } else {
        both.arrive_and_wait();
        // Otherwise rank 0 might give up its end before rank 1 posts the other.
        struct Failed {
          std::barrier<> &both;
          ~Failed() { both.arrive_and_wait(); }
        } failed{both};
        failCall(each.call, cudaErrorIllegalAddress);
        each.isSum ? sum(rank, value) : receive(rank, 0, value);
      }
    });
    EXPECT_EQ(errors[0], "timed out after 0.1 s waiting for " + each.awaited);
    EXPECT_NE(errors[1].find(each.call + ": "), std::string::npos) << errors[1];
  }
}

// If a rank fails, the waits of the other ranks end only when these ranks hear
// of the failure: the failed rank may still report a reason.
TEST_F(Copies, AnAbortEndsEveryHostsWait) {
  std::atomic<bool> isTold = false;
  Errors errors = Ranks{.gpus = {0, 0, 0}}.run([&](GpuRank &rank) {
    Values<uint64_t> value(rank, {1});
    if (rank.rank() == 0) {
      std::this_thread::sleep_for(50ms);
      throw std::runtime_error("no data");
    }
    std::thread hears([&] {
      std::this_thread::sleep_for(rank.rank() == 1 ? 150ms : 0ms);
      if (rank.rank() == 1) {
        isTold = true;
        rank.channels.abort("rank 0 failed");
      }
    });
    try {
      rank.order(rank.rank() == 1 ? receive(rank, 0, value)
                                  : sum(rank, value, {0, 1, 2}));
    } catch (...) {
      hears.join();
      EXPECT_TRUE(isTold);
      EXPECT_EQ(rank.gpu.failed(), rank.rank() == 1);
      throw;
    }
  });
  EXPECT_EQ(errors, (Errors{"no data", "aborted: rank 0 failed",
                            "aborted: rank 0 failed"}));
}
} // namespace
