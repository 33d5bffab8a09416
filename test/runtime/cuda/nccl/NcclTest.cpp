//===- NcclTest.cpp - NCCL without a GPU ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/SoftwareGpuTest.h"

#include <atomic>
#include <thread>

using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
/// A communicator of two ranks, each on its own device.
class Communicators : public SoftwareGpuTest {
protected:
  void make(bool blocks) {
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocks;
    onBoth([&](int rank) {
      OK(cudaSetDevice(rank));
      ncclResult_t result =
          ncclCommInitRankConfig(&all[rank], 2, id, rank, &config);
      EXPECT_EQ(result, blocks ? ncclSuccess : ncclInProgress);
      OK(settled(all[rank]));
    });
    for (int rank : {0, 1})
      own[rank] = stream(rank);
  }
  void onBoth(const std::function<void(int)> &body) {
    std::thread other(body, 1);
    body(0);
    other.join();
  }
  static ncclResult_t settled(ncclComm_t communicator) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
      std::this_thread::yield();
    }
    return state;
  }
  void end() {
    onBoth([&](int rank) {
      ncclResult_t result = ncclCommFinalize(all[rank]);
      EXPECT_TRUE(result == ncclSuccess || result == ncclInProgress);
      OK(settled(all[rank]));
      OK(ncclCommDestroy(all[rank]));
    });
  }

  ncclComm_t all[2] = {};
  cudaStream_t own[2] = {};
};

TEST_F(Communicators, SendBothWaysInGroups) {
  make(false);
  float *from[2], *to[2];
  for (int rank : {0, 1}) {
    from[rank] = memory(counting(100, 10.f * static_cast<float>(rank)), rank);
    to[rank] = memory<float>(100, rank);
  }
  onBoth([&](int rank) {
    OK(cudaSetDevice(rank));
    for (int round = 0; round < 20; ++round) {
      OK(ncclGroupStart());
      OK(ncclSend(from[rank], 100, ncclFloat, 1 - rank, all[rank], own[rank]));
      OK(ncclRecv(to[rank], 100, ncclFloat, 1 - rank, all[rank], own[rank]));
      ncclResult_t result = ncclGroupEnd();
      if (result == ncclInProgress) {
        EXPECT_EQ(cudaStreamQuery(own[rank]), cudaSuccess); // not yet launched
        EXPECT_EQ(
            ncclSend(from[rank], 1, ncclFloat, 1 - rank, all[rank], own[rank]),
            ncclInvalidArgument);
      }
      OK(settled(all[rank]));
      OK(cudaStreamSynchronize(own[rank]));
    }
  });
  EXPECT_EQ(valuesOf(to[0], 100), counting(100, 10));
  EXPECT_EQ(valuesOf(to[1], 100), counting(100, 0));
  end();
}

TEST_F(Communicators, HangWhereSendsCrossWithoutGroups) {
  make(true);
  float *memories[2] = {memory<float>(2, 0), memory<float>(2, 1)};
  onBoth([&](int rank) {
    OK(ncclSend(memories[rank], 1, ncclFloat, 1 - rank, all[rank], own[rank]));
    OK(ncclRecv(memories[rank] + 1, 1, ncclFloat, 1 - rank, all[rank],
                own[rank]));
  });
  std::this_thread::sleep_for(50ms);
  for (int rank : {0, 1})
    EXPECT_EQ(cudaStreamQuery(own[rank]), cudaErrorNotReady);
  std::atomic<bool> returned{false};
  std::thread first([&] {
    OK(ncclCommAbort(all[0]));
    returned = true;
  });
  OK(cudaStreamSynchronize(own[0]));
  std::this_thread::sleep_for(20ms);
  // The abort frees memory. So it also waits for the other rank's GPU, which
  // still executes its send.
  EXPECT_FALSE(returned);
  EXPECT_EQ(cudaStreamQuery(own[1]), cudaErrorNotReady);
  OK(ncclCommAbort(all[1]));
  OK(cudaStreamSynchronize(own[1]));
  first.join();
}

TEST_F(Communicators, StartAGroupAsAWhole) {
  make(true);
  std::vector<float> values = counting(2, 5);
  float *from = memory(values, 0), *to = memory<float>(2, 1);
  OK(ncclSend(from, 1, ncclFloat, 1, all[0], own[0]));
  OK(ncclSend(from + 1, 1, ncclFloat, 1, all[0], own[0]));
  cudaStream_t other = stream(1);
  OK(ncclGroupStart());
  OK(ncclRecv(to, 1, ncclFloat, 0, all[1], own[1]));
  OK(ncclRecv(to + 1, 1, ncclFloat, 0, all[1], other));
  OK(ncclGroupEnd());
  OK(cudaStreamSynchronize(own[1]));
  EXPECT_EQ(valuesOf(to, 2), values);
  end();
}

TEST_F(Communicators, RunCollectives) {
  make(true);
  double *from[2], *to[2];
  for (int rank : {0, 1}) {
    from[rank] = memory(std::vector<double>{1. + rank, 5. * rank}, rank);
    to[rank] = memory<double>(4, rank);
  }
  auto onAll = [&](auto collective) {
    onBoth([&](int rank) {
      OK(collective(rank));
      OK(cudaStreamSynchronize(own[rank]));
    });
  };
  onAll([&](int rank) {
    return ncclAllGather(from[rank], to[rank], 2, ncclDouble, all[rank],
                         own[rank]);
  });
  for (int rank : {0, 1})
    EXPECT_EQ(valuesOf(to[rank], 4), (std::vector<double>{1, 0, 2, 5}));
  onAll([&](int rank) {
    return ncclAllReduce(from[rank], from[rank], 2, ncclDouble, ncclSum,
                         all[rank], own[rank]);
  });
  for (int rank : {0, 1})
    EXPECT_EQ(valuesOf(from[rank], 2), (std::vector<double>{3, 5}));
  onAll([&](int rank) {
    return ncclBroadcast(to[rank] + (rank ? 3 : 0), to[rank], 1, ncclDouble, 1,
                         all[rank], own[rank]);
  });
  EXPECT_EQ(valuesOf(to[0], 1), (std::vector<double>{5}));
  end();
}

TEST_F(Communicators, FindDisagreements) {
  make(true);
  float *memories[2] = {memory<float>(2, 0), memory<float>(2, 1)};
  OK(ncclSend(memories[0], 1, ncclFloat, 1, all[0], own[0]));
  OK(ncclRecv(memories[1], 2, ncclFloat, 0, all[1], own[1]));
  for (int rank : {0, 1}) {
    OK(cudaStreamSynchronize(own[rank]));
    EXPECT_EQ(settled(all[rank]), ncclInvalidUsage);
    EXPECT_STREQ(ncclGetLastError(all[rank]),
                 "ranks disagree: message of 4 bytes and message of 8 bytes");
    OK(ncclCommAbort(all[rank]));
  }
}

TEST_F(Communicators, SplitWithoutBlocking) {
  make(false);
  ncclComm_t parts[2] = {}, none[2] = {};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclCommSplit(all[0], 0, 1, &parts[0], &config), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  OK(ncclCommGetAsyncError(all[0], &state));
  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(parts[0], nullptr);
  EXPECT_EQ(ncclCommSplit(all[1], 0, 0, &parts[1], &config), ncclInProgress);
  for (int rank : {0, 1}) {
    OK(settled(all[rank]));
    int place = -1;
    OK(ncclCommUserRank(parts[rank], &place));
    EXPECT_EQ(place, 1 - rank); // ordered by the keys
  }
  for (int rank : {0, 1})
    EXPECT_EQ(ncclCommSplit(all[rank], rank ? NCCL_SPLIT_NOCOLOR : 0, 0,
                            &none[rank], nullptr),
              ncclInProgress);
  for (int rank : {0, 1})
    OK(settled(all[rank]));
  EXPECT_EQ(none[1], nullptr);
  int count = 0;
  OK(ncclCommCount(none[0], &count));
  EXPECT_EQ(count, 1);
  OK(ncclCommDestroy(none[0]));
  for (ncclComm_t part : parts)
    OK(ncclCommDestroy(part));
  end();
}

TEST_F(Communicators, HaveADeviceForEachRank) {
  OK(cudaSetDevice(0));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  for (bool allow : {false, true}) {
    allowSharedDevices(allow);
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    EXPECT_EQ(ncclCommInitRankConfig(&all[0], 2, id, 0, &config),
              ncclInProgress);
    ncclResult_t state = ncclSuccess;
    OK(ncclCommGetAsyncError(all[0], &state));
    EXPECT_EQ(state, ncclInProgress);
    EXPECT_EQ(ncclCommInitRankConfig(&all[1], 2, id, 1, &config),
              ncclInProgress);
    for (ncclComm_t communicator : all) {
      EXPECT_EQ(settled(communicator), allow ? ncclSuccess : ncclInvalidUsage);
      OK(ncclCommAbort(communicator));
    }
  }
}
} // namespace
