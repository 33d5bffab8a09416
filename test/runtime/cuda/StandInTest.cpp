//===- StandInTest.cpp - CUDA, NVRTC and NCCL without a GPU ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/Philox.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <gtest/gtest.h>
#include <nccl.h>
#include <nvrtc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
#define OK(call) ASSERT_EQ(call, 0) << ncclGetLastError(nullptr)

/// What a test makes of CUDA, and that it leaves nothing.
class StandIn : public testing::Test {
protected:
  StandIn() { reset(); }
  ~StandIn() override {
    for (cudaEvent_t event : events)
      EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (cudaStream_t stream : streams) {
      // The failures that tests want are sticky.
      (void)cudaStreamSynchronize(stream);
      (void)cudaStreamDestroy(stream);
    }
    for (void *memory : allocations)
      (void)cudaFree(memory);
    for (void *memory : hostAllocations)
      (void)cudaFreeHost(memory);
    reset();
    EXPECT_EQ(liveAllocations() + liveHostAllocations() + liveStreams() +
                  liveEvents() + liveCommunicators(),
              0);
  }

  cudaStream_t stream(int device = 0) {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
              cudaSuccess);
    return streams.emplace_back(made);
  }
  cudaEvent_t event() {
    cudaEvent_t made = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&made, 0), cudaSuccess);
    return events.emplace_back(made);
  }
  template <typename T> T *memory(size_t count, int device = 0) {
    void *made = nullptr;
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&made, count * sizeof(T)), cudaSuccess);
    return static_cast<T *>(allocations.emplace_back(made));
  }
  template <typename T> T *hostMemory(size_t count) {
    void *made = nullptr;
    EXPECT_EQ(cudaMallocHost(&made, count * sizeof(T)), cudaSuccess);
    return static_cast<T *>(hostAllocations.emplace_back(made));
  }
  template <typename T>
  T *memory(const std::vector<T> &values, int device = 0) {
    T *made = memory<T>(values.size(), device);
    EXPECT_EQ(cudaMemcpy(made, values.data(), values.size() * sizeof(T),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
    return made;
  }
  template <typename T> std::vector<T> valuesOf(const T *made, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), made, count * sizeof(T),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  std::vector<void *> allocations, hostAllocations;
};

std::vector<float> counting(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

using Streams = StandIn;

TEST_F(Streams, ExecuteInOrder) {
  std::vector<int> seen, all(200);
  cudaStream_t one = stream();
  for (int i = 0; i < 200; ++i)
    putOn(one, [&, i] { seen.push_back(i); });
  OK(cudaStreamSynchronize(one));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(cudaStreamQuery(one), cudaSuccess);
}

TEST_F(Streams, AreOrderedByEvents) {
  cudaStream_t one = stream(), two = stream();
  cudaEvent_t passed = event(), back = event();
  int value = 0; // ThreadSanitizer looks on
  for (int i = 0; i < 100; ++i) {
    putOn(one, [&] { ++value; });
    OK(cudaEventRecord(passed, one));
    OK(cudaStreamWaitEvent(two, passed, 0));
    putOn(two, [&] {
      value *= 2;
      value %= 1000;
    });
    OK(cudaEventRecord(back, two));
    OK(cudaStreamWaitEvent(one, back, 0));
  }
  OK(cudaEventSynchronize(back));
  int expected = 0;
  for (int i = 0; i < 100; ++i)
    expected = (expected + 1) * 2 % 1000;
  EXPECT_EQ(value, expected);
}

TEST_F(Streams, AreWaitedForAsTheyWereAtTheCall) {
  cudaStream_t one = stream(), two = stream();
  cudaEvent_t passed = event();
  OK(cudaStreamWaitEvent(two, passed, 0)); // nothing to wait for
  OK(cudaEventQuery(passed));
  OK(cudaEventRecord(passed, one));
  OK(cudaEventSynchronize(passed));
  hold(true);
  OK(cudaEventRecord(passed, one));
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorNotReady);
  OK(cudaStreamWaitEvent(two, passed, 0));
  OK(cudaEventDestroy(passed));
  events.clear();
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorInvalidResourceHandle);
  hold(false);
  OK(cudaStreamSynchronize(two));
}

TEST_F(Streams, ExecuteNothingWhileHeld) {
  cudaStream_t one = stream();
  std::vector<float> values = counting(100, 1);
  float *device = memory(counting(100, 7));
  hold(true);
  OK(cudaMemcpyAsync(device, values.data(), 400, cudaMemcpyHostToDevice, one));
  values.assign(100, 0); // a copy from pageable memory has read it
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(cudaStreamQuery(one), cudaErrorNotReady);
  EXPECT_EQ(valuesOf(device, 100), counting(100, 7));
  hold(false);
  OK(cudaStreamSynchronize(one));
  EXPECT_EQ(valuesOf(device, 100), counting(100, 1));
}

TEST_F(Streams, BlockTheHostForCopiesToPageableMemory) {
  cudaStream_t one = stream();
  float *device = memory(counting(100, 3)), *pinned = hostMemory<float>(100);
  std::vector<float> pageable(100);
  recordCalls(true);
  OK(cudaMemcpyAsync(pageable.data(), device, 400, cudaMemcpyDeviceToHost,
                     one));
  EXPECT_EQ(pageable, counting(100, 3));
  OK(cudaMemcpyAsync(pinned, device, 400, cudaMemcpyDefault, one));
  OK(cudaStreamSynchronize(one));
  EXPECT_EQ(pinned[99], 102);
  EXPECT_EQ(calls(),
            (std::vector<std::string>{"cudaMemcpyAsync 400 D2H stream 1 blocks",
                                      "cudaMemcpyAsync 400 D2H stream 1",
                                      "cudaStreamSynchronize stream 1"}));
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 404, cudaMemcpyHostToDevice, one),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyDeviceToHost, one),
            cudaErrorInvalidValue);
}

TEST_F(Streams, CallTheHostWhichCallsNothing) {
  cudaStream_t one = stream();
  cudaError_t error = cudaSuccess;
  OK(cudaLaunchHostFunc(
      one,
      [](void *data) { *static_cast<cudaError_t *>(data) = cudaFree(nullptr); },
      &error));
  OK(cudaStreamSynchronize(one));
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

using Memory = StandIn;

TEST_F(Memory, IsFiniteAndOfOneDevice) {
  setDevices(2, 1000);
  size_t left = 0, all = 0;
  memory<std::byte>(600, 1);
  OK(cudaMemGetInfo(&left, &all));
  EXPECT_EQ(left, 400);
  void *more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 401), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  memory<std::byte>(401, 0);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  setDevices(0, 0);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

TEST_F(Memory, IsFreedBehindAllStreamsOfItsDevice) {
  cudaStream_t one = stream();
  auto *value = memory<int>(1);
  putOn(one, [=] {
    std::this_thread::sleep_for(10ms);
    *value = 1;
  });
  streams.clear();
  OK(cudaStreamDestroy(one));
  OK(cudaFree(value));
  allocations.clear();
}

using Failures = StandIn;

TEST_F(Failures, AreThoseOfTheCallsThatATestNames) {
  cudaStream_t one = stream();
  failCall("cudaEventRecord", cudaErrorIllegalAddress, 1);
  cudaEvent_t passed = event();
  OK(cudaEventRecord(passed, one));
  EXPECT_EQ(cudaEventRecord(passed, one), cudaErrorIllegalAddress);
  OK(cudaEventRecord(passed, one));
  failCall("ncclGetUniqueId", ncclSystemError);
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSystemError);
}

TEST_F(Failures, OfOperationsStay) {
  cudaStream_t one = stream();
  cudaEvent_t passed = event();
  int executed = 0;
  failExecution(cudaErrorLaunchFailure);
  putOn(one, [&] { ++executed; });
  putOn(one, [&] { ++executed; });
  (void)cudaEventRecord(passed, one);
  EXPECT_EQ(cudaStreamSynchronize(one), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(executed, 0);
  EXPECT_EQ(cudaEventDestroy(passed), cudaErrorLaunchFailure);
  events.clear();
  EXPECT_EQ(liveEvents(), 0);
  reset();
}

class Kernels : public StandIn {
protected:
  Kernels() {
    nvrtcProgram program = nullptr;
    EXPECT_EQ(
        nvrtcCreateProgram(&program, "", "Kernels.cu", 0, nullptr, nullptr),
        NVRTC_SUCCESS);
    const char *options[] = {"--gpu-architecture=sm_90"};
    EXPECT_EQ(nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
    size_t bytes = 0;
    EXPECT_EQ(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
    std::vector<char> image(bytes);
    EXPECT_EQ(nvrtcGetCUBIN(program, image.data()), NVRTC_SUCCESS);
    EXPECT_EQ(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
    EXPECT_EQ(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0,
                                  nullptr, nullptr, 0),
              cudaSuccess);
  }

  template <typename... Arguments>
  void run(const char *name, Arguments... arguments) {
    cudaStream_t one = stream();
    cudaKernel_t kernel = nullptr;
    OK(cudaLibraryGetKernel(&kernel, library, name));
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, kernel));
    {
      void *pointers[] = {&arguments...};
      OK(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(3),
                          dim3(32), pointers, 0, one));
    }
    ((arguments = {}), ...); // they have been copied
    OK(cudaStreamSynchronize(one));
  }

  cudaLibrary_t library = nullptr;
};

TEST_F(Kernels, Fold) {
  constexpr size_t kCount = 1001;
  struct {
    const float *begin[256];
    int count;
  } summands = {};
  std::vector<float> expected(kCount);
  for (float first : {0.1f, 3e7f, 0.7f}) {
    std::vector<float> values = counting(kCount, first);
    summands.begin[summands.count++] = memory(values);
    for (size_t i = 0; i < kCount; ++i)
      expected[i] = summands.count == 1 ? values[i] : expected[i] + values[i];
  }
  float *sum = memory<float>(kCount);
  run("chimeraFoldFloat", summands, sum, kCount * sizeof(float) + 0ULL);
  EXPECT_EQ(valuesOf(sum, kCount), expected);
}

TEST_F(Kernels, KeepElements) {
  constexpr size_t count = 3007;
  constexpr uint64_t kFirst = (uint64_t{5} << 32) + 7;
  bool *kept = memory<bool>(count);
  run("chimeraKeepElements", keptFrom(0.25) + 0ULL, 77ULL, kFirst + 0ULL,
      count + 0ULL, kept);
  std::unique_ptr<bool[]> expected(new bool[count]), got(new bool[count]);
  keepElements(0.25, 77, kFirst, count, expected.get());
  OK(cudaMemcpy(got.get(), kept, count, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(got.get(), got.get() + count, expected.get()));
}

TEST_F(Kernels, AreRefusedWhereCudaWouldLoadThemAtTheirLaunch) {
  cudaStream_t one = stream();
  cudaKernel_t kernel = nullptr;
  OK(cudaLibraryGetKernel(&kernel, library, "chimeraScaleFloat"));
  std::byte *elements = nullptr;
  unsigned long long count = 0;
  double factor = 1;
  void *pointers[] = {&elements, &count, &factor};
  auto launch = [&] {
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(1),
                            dim3(1), pointers, 0, one);
  };
  EXPECT_EQ(launch(), cudaErrorInvalidDeviceFunction);
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, kernel));
  OK(launch());
}

TEST_F(Kernels, HaveNames) {
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "other"),
            cudaErrorSymbolNotFound);
}

/// A communicator of two ranks, that of each on its device.
class Communicators : public StandIn {
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
        EXPECT_EQ(cudaStreamQuery(own[rank]), cudaSuccess); // not yet there
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
  // It frees memory, for which it waits for the other's GPU too.
  EXPECT_FALSE(returned);
  EXPECT_EQ(cudaStreamQuery(own[1]), cudaErrorNotReady);
  OK(ncclCommAbort(all[1]));
  OK(cudaStreamSynchronize(own[1]));
  first.join();
}

TEST_F(Communicators, GoOnWithAllOfAGroup) {
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

TEST_F(Communicators, Collect) {
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
    EXPECT_EQ(place, 1 - rank); // by the keys
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
