//===- TensorGraphs.cpp - Graphs of LibTorch's operations on GPUs ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/cuda/TensorGraphs.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <mutex>
#include <utility>

// No `using namespace chimera::runtime`, since LibTorch also has a class
// Device.
namespace chimera::runtime {

namespace {
/// The mutex that a thread must hold while it captures or destroys a graph:
/// both modify the random number generator that all graphs of a GPU share. A
/// thread that holds the mutex never waits for another rank.
std::mutex &making() {
  static std::mutex mutex;
  return mutex;
}

class TensorGraph final : public Graph {
public:
  explicit TensorGraph(std::unique_ptr<at::cuda::CUDAGraph> graph)
      : graph(std::move(graph)) {}
  ~TensorGraph() override {
    std::lock_guard lock(making());
    graph.reset();
  }

  void launch() override { graph->replay(); }

private:
  std::unique_ptr<at::cuda::CUDAGraph> graph;
};

template <typename Call> void attempt(const Call &call) noexcept {
  try {
    call();
  } catch (const std::exception &) {
    (void)cudaGetLastError();
  }
}

class TensorGraphs final : public GraphFactory {
public:
  std::unique_ptr<Graph> capture(const std::function<void()> &calls) override {
    std::lock_guard lock(making());
    // Free the memory that the allocator has cached in executions without
    // graphs. It would stay unused.
    if (!std::exchange(hasCaptured, true))
      c10::cuda::CUDACachingAllocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    // In this mode, other threads may use CUDA during the capture.
    graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      calls();
    } catch (...) {
      // After an error in `calls`, capture_end fails too, with a less useful
      // error. It may leave the graph registered in the allocators, although
      // the graph is destroyed. So ignore the error of capture_end, and end the
      // registration here.
      const auto device = c10::cuda::current_device();
      attempt([&] { graph->capture_end(); });
      attempt([&] {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
      });
      attempt(
          [&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool); });
      throw;
    }
    graph->capture_end();
    return std::make_unique<TensorGraph>(std::move(graph));
  }

  ConstBytes number() override {
    if (!own.defined())
      own = at::zeros({}, at::dtype(at::kLong).device(at::kCUDA));
    return {static_cast<const std::byte *>(own.const_data_ptr()), own.nbytes()};
  }
  void setNumber(uint64_t number) override {
    own.fill_(static_cast<int64_t>(number));
  }

private:
  const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  at::Tensor own; ///< the number
  bool hasCaptured = false;
};
} // namespace

std::shared_ptr<GraphFactory> makeTensorGraphs() {
  return std::make_shared<TensorGraphs>();
}

} // namespace chimera::runtime
