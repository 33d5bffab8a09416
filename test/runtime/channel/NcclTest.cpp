//===- NcclTest.cpp - Calls of channels to NCCL ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Channels.h"
#include "runtime/control/InProcess.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/channel/World.h"
#include "test/runtime/cuda/CleanGpus.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>
#include <nccl.h>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;
using chimera::program::MessageModel;

namespace {
constexpr auto kTimeout = 100s;

bool holds(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class Nccl : public CleanGpus {
protected:
  static size_t callsOf(const std::string &name) {
    return std::ranges::count_if(calls(), [&](const std::string &call) {
      return call.starts_with(name);
    });
  }
};

/// All pairs of ranks exchange messages, and one group sums over all ranks.
Communication amongAll(uint32_t ranks, MessageModel model) {
  Communication all;
  all.model = model;
  ReduceGroup group{0, {}};
  for (uint32_t from = 0; from < ranks; ++from) {
    group.contributors.push_back(from);
    for (uint32_t to = 0; to < ranks; ++to)
      if (from != to)
        all.pairs.push_back({from, to});
  }
  all.groups = {group};
  return all;
}

using Body = std::function<void(Rank &)>;

/// On a thread for each rank, prepares the channels and runs `body`. Returns
/// the messages of the exceptions, by rank.
std::vector<std::string> onRanks(const Communication &communication,
                                 uint32_t ranks, const NcclOptions &options,
                                 const Body &body,
                                 const Body &unprepared = {}) {
  std::vector<std::string> errors(ranks);
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        cuda::CudaDevice device({.ordinal = static_cast<int>(rank)});
        auto channels = makeNcclChannels(device, *controls[rank], options);
        auto queue = device.makeQueue("compute");
        Rank own{*channels, device, *queue};
        if (unprepared)
          unprepared(own);
        channels->prepare(communication);
        body(own);
      } catch (const std::exception &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}
const std::vector<std::string> kNoErrors(2);

NcclOptions patient() { return {.timeout = kTimeout, .scratchBytes = 1000}; }

// Without the group, the send of each rank would wait for the receive of the
// other rank, which comes later on the same stream.
TEST_F(Nccl, AGroupIsOneOperation) {
  EXPECT_EQ(onRanks(amongAll(2, MessageModel::StreamPerDevice), 2, patient(),
                    [](Rank &rank) {
                      uint32_t self = rank.rank(), peer = 1 - self;
                      Values<uint64_t> out(rank, {self}), in(rank, {9});
                      rank.channels.beginGroup();
                      auto sending = rank.channels.postSend(peer, out.bytes(),
                                                            out.after());
                      auto receiving = rank.channels.postReceive(
                          peer, in.bytes(), in.after());
                      rank.channels.endGroup();
                      rank.wait(std::move(sending), kTimeout);
                      rank.wait(std::move(receiving), kTimeout);
                      EXPECT_EQ(in.get(), std::vector<uint64_t>{peer});
                    }),
            kNoErrors);
}

TEST_F(Nccl, UnderOneOrderThereIsOneStreamAndNothingElse) {
  std::mutex mutex;
  EXPECT_EQ(onRanks(amongAll(2, MessageModel::StreamPerDevice), 2, patient(),
                    [](Rank &) {}),
            kNoErrors);
  recordCalls(true);
  EXPECT_EQ(onRanks(amongAll(2, MessageModel::StreamPerDevice), 2, patient(),
                    [](Rank &) {}),
            kNoErrors);
  EXPECT_EQ(callsOf("ncclCommInitRankConfig"), 2u);
  EXPECT_EQ(callsOf("ncclCommSplit"), 0u);
  // Each rank has one stream to compute on, in addition to the streams of the
  // channels.
  EXPECT_EQ(callsOf("cudaStreamCreate"), 4u);
}

TEST_F(Nccl, CommunicatorsAreSplitInOneOrder) {
  recordCalls(true);
  auto errors = onRanks(amongAll(3, MessageModel::StreamPerPair), 3, patient(),
                        [](Rank &) {});
  EXPECT_EQ(errors, std::vector<std::string>(3));
  // Each of the three ranks calls ncclCommSplit once for each of the three
  // pairs and once for the group.
  EXPECT_EQ(callsOf("ncclCommSplit"), 12u);
  EXPECT_EQ(callsOf("ncclCommInitRankConfig"), 3u);
  clearCalls();
  onRanks(amongAll(3, MessageModel::StreamPerDirection), 3, patient(),
          [](Rank &) {});
  EXPECT_EQ(callsOf("ncclCommSplit"), 21u);
}

TEST_F(Nccl, AllocatesNothingAfterPreparing) {
  auto body = [](Rank &rank) {
    uint32_t self = rank.rank(), peer = 1 - self;
    Values<float> values(rank, std::vector<float>(1000, 1));
    Values<float> other(rank, std::vector<float>(1000));
    Values<uint8_t> token(rank, {1});
    // After this all-reduce, both ranks have begun to run.
    rank.wait(rank.channels.startAllReduce({0, {0, 1}}, ElementType::Float32,
                                           {values.bytes()}, values.bytes(),
                                           rank.queue.record()),
              kTimeout);
    if (self == 0)
      recordCalls(true);
    for (int round = 0; round < 3; ++round) {
      if (self == 0)
        rank.wait(
            rank.channels.postSend(peer, values.bytes(), rank.queue.record()),
            kTimeout);
      else
        rank.wait(
            rank.channels.postReceive(peer, other.bytes(), rank.queue.record()),
            kTimeout);
      rank.wait(rank.channels.startAllReduce({0, {0, 1}}, ElementType::Float32,
                                             {values.bytes()}, other.bytes(),
                                             rank.queue.record()),
                kTimeout);
    }
    if (self == 0)
      recordCalls(false);
    // Recording ends before this all-reduce. The other rank cannot have ended
    // before, so the records contain no calls of its end.
    rank.wait(rank.channels.startAllReduce({0, {0, 1}}, ElementType::UInt64,
                                           {token.bytes()}, token.bytes(),
                                           rank.queue.record()),
              kTimeout);
    EXPECT_EQ(other.get(), std::vector<float>(1000, 4));
  };
  EXPECT_EQ(
      onRanks(amongAll(2, MessageModel::StreamPerDevice), 2, patient(), body),
      kNoErrors);
  EXPECT_GT(callsOf("ncclSend"), 0u);
  for (const char *taking : {"cudaMalloc", "cudaHostAlloc", "cudaStreamCreate",
                             "ncclComm", "cudaFree", "cudaLibrary"})
    EXPECT_EQ(callsOf(taking), 0u) << taking;
}

TEST_F(Nccl, SumsMayBeNcclsOwn) {
  NcclOptions options = patient();
  options.transportAllReduce = true;
  recordCalls(true);
  for (MessageModel model :
       {MessageModel::StreamPerDevice, MessageModel::StreamPerPair}) {
    clearCalls();
    auto errors = onRanks(amongAll(2, model), 2, options, [](Rank &rank) {
      Values<double> values(rank, {1, 2});
      rank.wait(rank.channels.startAllReduce({0, {0, 1}}, ElementType::Float64,
                                             {values.bytes()}, values.bytes(),
                                             values.after()),
                kTimeout);
      EXPECT_EQ(values.get(), (std::vector<double>{2, 4}));
    });
    EXPECT_EQ(errors, kNoErrors);
    EXPECT_EQ(callsOf("ncclAllReduce"), 2u);
  }
}

TEST_F(Nccl, ATimeoutNamesTheMissingRank) {
  NcclOptions options{.timeout = 200ms};
  std::vector<std::string> errors = onRanks(
      amongAll(2, MessageModel::StreamPerDevice), 2, options, [](Rank &) {},
      [](Rank &rank) {
        if (rank.rank() == 1)
          throw std::runtime_error("no data");
      });
  EXPECT_EQ(errors[1], "no data");
  EXPECT_TRUE(holds(errors[0], "timed out after 0.2 s waiting for "
                               "ncclCommInitRankConfig of NCCL"))
      << errors[0];
}

TEST_F(Nccl, ReportsNcclErrors) {
  // If one rank fails, the operations of the other rank have no partner any
  // more. So both ranks report errors.
  retryUntilMessage("NCCL failed: ncclSend: ", 500ms,
                    [](std::chrono::milliseconds timeout) {
                      resetSoftwareGpu();
                      // Let a send fail that comes after the sends that connect
                      // the ranks.
                      failCall("ncclSend", ncclSystemError, 3);
                      return onRanks(amongAll(2, MessageModel::StreamPerDevice),
                                     2, {.timeout = timeout}, [](Rank &rank) {
                                       Values<uint8_t> token(rank, {1});
                                       if (rank.rank() == 0) {
                                         // One of these sends fails. Rank 1
                                         // posts no receives for them.
                                         for (int k = 0; k < 4; ++k)
                                           rank.channels.postSend(
                                               1, token.bytes(), token.after());
                                       }
                                     })[0];
                    });
}

TEST_F(Nccl, RanksOnOneGpuAreRefused) {
  setDevices(1, 1 << 20);
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      try {
        cuda::CudaDevice device({});
        makeNcclChannels(device, *controls[rank], patient())
            ->prepare(amongAll(2, MessageModel::StreamPerDevice));
      } catch (const std::exception &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(holds(errors[0], "Duplicate GPU")) << errors[0];
}

// If a rank fails, the waits of the other ranks end only when these ranks hear
// of the failure.
TEST_F(Nccl, AnAbortEndsOperationsInProgress) {
  std::vector<std::string> errors = onRanks(
      amongAll(2, MessageModel::StreamPerDevice), 2, patient(), [](Rank &rank) {
        if (rank.rank() == 0)
          throw std::runtime_error("no data");
        Values<uint8_t> token(rank, {1});
        std::thread hears([&] {
          std::this_thread::sleep_for(50ms);
          rank.channels.abort("rank 0 failed");
        });
        try {
          rank.wait(rank.channels.postReceive(0, token.bytes(), token.after()),
                    kTimeout);
        } catch (...) {
          hears.join();
          throw;
        }
      });
  EXPECT_EQ(errors,
            (std::vector<std::string>{"no data", "aborted: rank 0 failed"}));
}
} // namespace
