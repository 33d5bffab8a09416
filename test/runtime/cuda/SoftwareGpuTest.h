//===- SoftwareGpuTest.h - Fixture of the software GPU's tests --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPUTEST_H
#define CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPUTEST_H

#include "test/runtime/cuda/CleanGpus.h"

#include <nccl.h>

#include <numeric>
#include <vector>

#define OK(call) ASSERT_EQ(call, 0) << ncclGetLastError(nullptr)

namespace chimera::runtime::test {

/// A test whose CUDA objects are freed at its end.
class SoftwareGpuTest : public CleanGpus {
protected:
  ~SoftwareGpuTest() override {
    for (cudaEvent_t event : events)
      EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (cudaStream_t stream : streams) {
      // These calls fail after an injected failure, and their errors are
      // ignored.
      (void)cudaStreamSynchronize(stream);
      (void)cudaStreamDestroy(stream);
    }
    for (void *memory : allocations)
      (void)cudaFree(memory);
    for (void *memory : hostAllocations)
      (void)cudaFreeHost(memory);
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

inline std::vector<float> counting(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_SOFTWAREGPUTEST_H
