//===- SoftwareGpuTest.cpp - CUDA and NVRTC without a GPU -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/SoftwareGpuTest.h"
#include "runtime/random/Mix.h"
#include "runtime/random/Philox.h"

#include <nvrtc.h>

#include <algorithm>
#include <memory>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
using Streams = SoftwareGpuTest;

TEST_F(Streams, ExecuteInOrder) {
  std::vector<int> seen, all(200);
  cudaStream_t one = stream();
  for (int i = 0; i < 200; ++i)
    enqueueOn(one, [&, i] { seen.push_back(i); });
  OK(cudaStreamSynchronize(one));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(cudaStreamQuery(one), cudaSuccess);
}

TEST_F(Streams, AreOrderedByEvents) {
  cudaStream_t one = stream(), two = stream();
  cudaEvent_t passed = event(), back = event();
  int value = 0; // ThreadSanitizer reports unordered accesses
  for (int i = 0; i < 100; ++i) {
    enqueueOn(one, [&] { ++value; });
    OK(cudaEventRecord(passed, one));
    OK(cudaStreamWaitEvent(two, passed, 0));
    enqueueOn(two, [&] {
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
  holdStreams(true);
  OK(cudaEventRecord(passed, one));
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorNotReady);
  OK(cudaStreamWaitEvent(two, passed, 0));
  OK(cudaEventDestroy(passed));
  events.clear();
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorInvalidResourceHandle);
  holdStreams(false);
  OK(cudaStreamSynchronize(two));
}

TEST_F(Streams, ExecuteNothingWhileHeld) {
  cudaStream_t one = stream();
  std::vector<float> values = counting(100, 1);
  float *device = memory(counting(100, 7));
  holdStreams(true);
  OK(cudaMemcpyAsync(device, values.data(), 400, cudaMemcpyHostToDevice, one));
  values.assign(100, 0); // the call has read the pageable memory
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(cudaStreamQuery(one), cudaErrorNotReady);
  EXPECT_EQ(valuesOf(device, 100), counting(100, 7));
  holdStreams(false);
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

using Memory = SoftwareGpuTest;

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

TEST_F(Memory, IsFreedAfterAllStreamsOfItsDevice) {
  cudaStream_t one = stream();
  auto *value = memory<int>(1);
  enqueueOn(one, [=] {
    std::this_thread::sleep_for(10ms);
    *value = 1;
  });
  streams.clear();
  OK(cudaStreamDestroy(one));
  OK(cudaFree(value));
  allocations.clear();
}

using Failures = SoftwareGpuTest;

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

TEST_F(Failures, OfOperationsAreSticky) {
  cudaStream_t one = stream();
  cudaEvent_t passed = event();
  int executed = 0;
  failExecution(cudaErrorLaunchFailure);
  enqueueOn(one, [&] { ++executed; });
  enqueueOn(one, [&] { ++executed; });
  (void)cudaEventRecord(passed, one);
  EXPECT_EQ(cudaStreamSynchronize(one), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaEventQuery(passed), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(executed, 0);
  EXPECT_EQ(cudaEventDestroy(passed), cudaErrorLaunchFailure);
  events.clear();
  EXPECT_EQ(liveEvents(), 0);
  resetSoftwareGpu();
}

class Kernels : public SoftwareGpuTest {
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
    ((arguments = {}), ...); // the launch has copied the arguments
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
  run("chimeraKeepElements", smallestKeptDraw(0.25) + 0ULL, 77ULL,
      static_cast<const unsigned long long *>(nullptr), kFirst + 0ULL,
      count + 0ULL, kept);
  std::unique_ptr<bool[]> expected(new bool[count]), got(new bool[count]);
  computeDropoutMask(0.25, 77, kFirst, count, expected.get());
  OK(cudaMemcpy(got.get(), kept, count, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(got.get(), got.get() + count, expected.get()));
  // The step is in memory of the GPU.
  const unsigned long long kStep = 5;
  auto *step = memory<unsigned long long>(1);
  OK(cudaMemcpy(step, &kStep, sizeof kStep, cudaMemcpyHostToDevice));
  run("chimeraKeepElements", smallestKeptDraw(0.25) + 0ULL, 77ULL,
      static_cast<const unsigned long long *>(step), kFirst + 0ULL,
      count + 0ULL, kept);
  computeDropoutMask(0.25, splitMix64(77 ^ kStep), kFirst, count,
                     expected.get());
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
} // namespace
