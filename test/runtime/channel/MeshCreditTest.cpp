//===- MeshCreditTest.cpp - Messages that wait for their receives ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/AllReduce.h"
#include "runtime/channel/tcp/Channels.h"
#include "runtime/device/Host.h"
#include "runtime/system/Deadline.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/channel/LocalPeerTables.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;
using tcp::Mesh;
using tcp::SharedMeshOperation;

namespace {
constexpr Mesh::Stream kData = Mesh::kFirstOfData, kOther = kData + 1,
                       kLast = kData + 100000, kControl = 1;

class MeshCredit : public testing::TestWithParam<Hosts> {
protected:
  MeshCredit() : peerTables(2, GetParam()) {
    for (uint32_t rank : {0, 1})
      meshes.push_back(std::make_unique<Mesh>(
          peerTables.of(rank), std::move(peerTables.listeners[rank]), 1h,
          [this](uint32_t, const std::string &) { ++losses; }));
  }
  ~MeshCredit() override {
    meshes.clear();
    EXPECT_EQ(losses, 0);
  }

  /// Sends `count` messages of `bytes` bytes from rank 0. All bytes of a
  /// message are its number.
  std::vector<SharedMeshOperation> send(Mesh::Stream stream, size_t count,
                                        uint64_t bytes) {
    std::vector<SharedMeshOperation> all;
    for (size_t i = 0; i < count; ++i) {
      sent.emplace_back(bytes, static_cast<std::byte>(i));
      all.push_back(meshes[0]->send(1, stream, sent.back()));
    }
    return all;
  }
  /// Receives the messages of `send` at rank 1, in order.
  void expectToReceive(Mesh::Stream stream, size_t count, uint64_t bytes) {
    std::vector<std::byte> got(bytes);
    for (size_t i = 0; i < count; ++i) {
      meshes[1]->wait(meshes[1]->receive(0, stream, got), kPatience);
      EXPECT_EQ(got, std::vector<std::byte>(bytes, std::byte(i))) << i;
    }
  }
  /// Checks that the first `count` operations complete, and that the others do
  /// not complete within 100 ms.
  void expectDone(const std::vector<SharedMeshOperation> &all, size_t count) {
    for (size_t i = 0; i < count; ++i)
      meshes[0]->wait(all[i], kPatience);
    if (count < all.size())
      std::this_thread::sleep_for(100ms);
    for (size_t i = count; i < all.size(); ++i)
      EXPECT_FALSE(all[i]->isDone()) << i;
  }
  void expectNoStreams() {
    // A mesh reads credits (permissions to send) for which no send waits only
    // together with the next message. So exchange a message in each direction
    // first.
    std::vector<std::byte> out(1 << 20), in(1 << 20);
    for (uint32_t from : {0, 1}) {
      auto sending = meshes[from]->send(1 - from, kLast, out);
      meshes[1 - from]->wait(meshes[1 - from]->receive(from, kLast, in),
                             kPatience);
      meshes[from]->wait(sending, kPatience);
    }
    for (auto &mesh : meshes)
      EXPECT_EQ(mesh->countStreams(), 0u) << "rank " << mesh->rank();
  }

  LocalPeerTables peerTables;
  std::atomic<int> losses = 0;
  std::deque<std::vector<std::byte>> sent;
  std::vector<std::unique_ptr<Mesh>> meshes;
};

INSTANTIATE_TEST_SUITE_P(, MeshCredit,
                         testing::Values(Hosts::One, Hosts::Several),
                         testing::PrintToStringParamName());

TEST_P(MeshCredit, ALongMessageWaitsForItsReceive) {
  constexpr uint64_t kBytes = 1 << 20;
  std::vector<SharedMeshOperation> sends = send(kData, 3, kBytes);
  expectDone(sends, 0);
  expectToReceive(kData, 3, kBytes);
  expectDone(sends, 3);
}

TEST_P(MeshCredit, ShortMessagesGoAheadUpToABound) {
  constexpr uint64_t kBytes = 1000;
  constexpr size_t kMost = Mesh::kSendAhead / (kBytes + Mesh::kOverhead);
  std::vector<SharedMeshOperation> sends = send(kData, 2 * kMost, kBytes);
  // The limit on bytes that are sent before their receives is for all streams
  // together.
  std::vector<SharedMeshOperation> others = send(kOther, 2, kBytes);
  expectDone(sends, kMost);
  expectDone(others, 0);
  expectToReceive(kOther, 2, kBytes);
  expectToReceive(kData, 2 * kMost, kBytes);
  expectDone(sends, 2 * kMost);
}

TEST_P(MeshCredit, EmptyMessagesCountToo) {
  constexpr size_t kMost = Mesh::kSendAhead / Mesh::kOverhead;
  std::vector<SharedMeshOperation> sends = send(kData, kMost + 10, 0);
  expectDone(sends, kMost);
  expectToReceive(kData, kMost + 10, 0);
}

// Control messages, such as the news of a failure, must not wait for data
// messages.
TEST_P(MeshCredit, DataDoesNotHoldUpControl) {
  send(kData, 3, 1 << 20);
  send(kData, 100, 1000);
  std::byte word{42}, heard{};
  auto news = meshes[1]->receive(0, kControl, {&heard, 1});
  meshes[0]->send(1, kControl, {&word, 1});
  meshes[1]->wait(news, kPatience);
  EXPECT_EQ(heard, word);
}

TEST_P(MeshCredit, AMessageOfTheWrongSizeGoesNowhere) {
  std::vector<std::byte> word(8);
  auto receive = meshes[1]->receive(0, kData, word);
  send(kData, 1, 8 << 20);
  EXPECT_THROW(meshes[1]->wait(receive, kPatience), std::invalid_argument);
  EXPECT_EQ(Mesh::receivedBytes(*receive), uint64_t(8) << 20);
  send(kData, 1, 8);
  expectToReceive(kData, 1, 8);
}

TEST_P(MeshCredit, TheMessageOfADroppedReceiveGoesNowhere) {
  constexpr uint64_t kBytes = 4 << 20;
  {
    std::vector<std::byte> freed(kBytes);
    meshes[1]->abandon(meshes[1]->receive(0, kData, freed));
  }
  expectDone(send(kData, 1, kBytes), 1);
  send(kData, 1, 100);
  expectToReceive(kData, 1, 100);
}

// If a part of the dropped message were sent, the receiver would wait for the
// rest for ever.
TEST_P(MeshCredit, ADroppedSendThatHasNotBegunNeverDoes) {
  std::vector<SharedMeshOperation> sends = send(kData, 2, 1 << 20);
  meshes[0]->abandon(sends[0]);
  std::vector<std::byte> got(1 << 20);
  EXPECT_THROW(meshes[1]->wait(meshes[1]->receive(0, kData, got), 300ms),
               WaitError);
  expectDone(sends, 0);
}

TEST_P(MeshCredit, MessagesToItselfWaitToo) {
  std::vector<std::byte> out(1 << 20, std::byte(7)), in(1 << 20);
  auto sending = meshes[0]->send(0, kData, out);
  EXPECT_FALSE(sending->isDone());
  meshes[0]->wait(meshes[0]->receive(0, kData, in), kPatience);
  EXPECT_TRUE(sending->isDone());
  EXPECT_EQ(in, out);
}

// Both ranks delete the state of a completed stream, whether the send or the
// receive was posted first.
TEST_P(MeshCredit, FinishedStreamsKeepNoState) {
  for (Mesh::Stream stream = kData; stream < kData + 50; ++stream) {
    uint64_t bytes = stream % 3 ? 100 : 100000;
    std::vector<std::byte> out(bytes), in(bytes);
    auto sending = stream % 2 ? meshes[0]->send(1, stream, out) : nullptr;
    auto receiving = meshes[1]->receive(0, stream, in);
    if (!sending)
      sending = meshes[0]->send(1, stream, out);
    meshes[1]->wait(receiving, kPatience);
    meshes[0]->wait(sending, kPatience);
  }
  expectNoStreams();
}

TEST_P(MeshCredit, AllReducesLeaveNothing) {
  constexpr size_t kTimes = 100;
  auto reduce = [&](uint32_t rank) {
    auto channels = makeTcpChannels(*meshes[rank]);
    std::unique_ptr<Device> device = makeHostDevice();
    std::unique_ptr<Queue> queue = device->makeQueue("compute");
    for (size_t i = 0; i < kTimes; ++i) {
      std::vector<uint64_t> values(1 + i * 1000, 1), sum(values.size());
      auto given = std::as_bytes(std::span(values));
      channels->wait(
          *queue,
          channels->startAllReduce({0, {0, 1}}, ElementType::UInt64, {given},
                                   std::as_writable_bytes(std::span(sum))),
          kPatience);
      ASSERT_EQ(sum, std::vector<uint64_t>(sum.size(), 2));
    }
  };
  std::thread other([&] { reduce(1); });
  reduce(0);
  other.join();
  expectNoStreams();
}

/// Element `i` of the contribution of a rank.
uint64_t valueOf(uint32_t rank, uint64_t i) { return i * 2 + rank * 1000003; }

// Slices this small are sent ahead of their receives. So rank 0 has all
// contributions before it starts, and each receive ends while it is posted.
TEST_P(MeshCredit, ContributionsThatArriveBeforeTheirReceives) {
  constexpr uint64_t kSliceBytes = 64;
  constexpr uint64_t kMaxSlices = 12;
  for (uint64_t slices = 1; slices <= kMaxSlices; ++slices) {
    const uint64_t elements = 2 * slices * kSliceBytes / sizeof(uint64_t) - 1;
    std::vector<uint64_t> given[2], sums[2];
    std::shared_ptr<tcp::AllReduce> all[2];
    for (uint32_t rank : {1, 0}) {
      for (uint64_t i = 0; i < elements; ++i)
        given[rank].push_back(valueOf(rank, i));
      sums[rank].resize(elements);
      all[rank] = std::make_shared<tcp::AllReduce>(
          *meshes[rank], ReduceGroup{0, {0, 1}}, /*number=*/slices,
          ElementType::UInt64,
          std::vector<ConstBytes>{std::as_bytes(std::span(given[rank]))},
          std::as_writable_bytes(std::span(sums[rank])),
          std::make_shared<tcp::SlicePool>(kSliceBytes));
      all[rank]->start();
      // A message of control that arrives was sent after the contributions.
      std::byte mark{};
      SharedMeshOperation got =
          meshes[1 - rank]->receive(rank, kControl, {&mark, 1});
      meshes[rank]->send(1 - rank, kControl, {&mark, 1});
      meshes[1 - rank]->wait(got, kPatience);
    }
    for (uint32_t rank : {0, 1}) {
      for (Deadline limit(kPatience); !all[rank]->isDone() && !limit.passed();)
        std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(all[rank]->isDone()) << slices << " slices, rank " << rank;
      for (uint64_t i = 0; i < elements; ++i)
        ASSERT_EQ(sums[rank][i], valueOf(0, i) + valueOf(1, i))
            << slices << " slices, rank " << rank << ", element " << i;
    }
  }
}

// Each rank receives 8 MiB of the other rank's contribution, in slices. It
// never has memory for more than four of them.
TEST_P(MeshCredit, AnAllReduceKeepsFewSlices) {
  constexpr size_t kElements = size_t{2} << 20;
  constexpr uint64_t kSlices =
      kElements * sizeof(uint64_t) / 2 / tcp::SlicePool::kBytes;
  static_assert(kSlices == 64);
  auto reduce = [&](uint32_t rank) {
    auto pool = std::make_shared<tcp::SlicePool>();
    std::vector<uint64_t> values(kElements, 1), sum(kElements);
    auto all = std::make_shared<tcp::AllReduce>(
        *meshes[rank], ReduceGroup{0, {0, 1}}, /*number=*/0,
        ElementType::UInt64,
        std::vector<ConstBytes>{std::as_bytes(std::span(values))},
        std::as_writable_bytes(std::span(sum)), pool);
    all->start();
    for (Deadline deadline(kPatience); !all->isDone() && !deadline.passed();)
      std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(all->isDone());
    EXPECT_EQ(sum, std::vector<uint64_t>(kElements, 2));
    EXPECT_GT(pool->count(), 0u);
    EXPECT_LE(pool->count(), 4u);
  };
  std::thread other([&] { reduce(1); });
  reduce(0);
  other.join();
}
} // namespace
