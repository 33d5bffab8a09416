//===- KernelsOnHost.cpp - The GPU kernels, compiled for the host ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/KernelsOnHost.h"

#include <math.h> // sqrt(float) and sqrt(double) outside of std
#include <tuple>
#include <utility>

using namespace chimera::runtime;

namespace {
struct Index3 {
  unsigned x, y, z;
};
thread_local Index3 blockIdx, threadIdx, blockDim, gridDim;
} // namespace

// CUDA's headers define these as empty for host compilers.
#ifndef __global__
#define __global__
#define __device__
#endif
#include "runtime/device/cuda/Kernels.cu"

namespace {
template <typename Visit> void eachIn(const Index3 &size, const Visit &visit) {
  for (unsigned z = 0; z < size.z; ++z)
    for (unsigned y = 0; y < size.y; ++y)
      for (unsigned x = 0; x < size.x; ++x)
        visit(Index3{x, y, z});
}

template <typename... Parameters, size_t... I>
std::function<void()> bindAs(void (*kernel)(Parameters...),
                             std::index_sequence<I...>, dim3 grid, dim3 block,
                             [[maybe_unused]] void **arguments) {
  std::tuple<Parameters...> values(*static_cast<Parameters *>(arguments[I])...);
  return [=] {
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    eachIn(gridDim, [&](const Index3 &blockIndex) {
      blockIdx = blockIndex;
      eachIn(blockDim, [&](const Index3 &threadIndex) {
        threadIdx = threadIndex;
        std::apply(kernel, values);
      });
    });
  };
}

template <typename... Parameters>
auto indices(void (*)(Parameters...)) -> std::index_sequence_for<Parameters...>;

template <auto kernel>
std::function<void()> bind(dim3 grid, dim3 block, void **arguments) {
  return bindAs(kernel, decltype(indices(kernel))(), grid, block, arguments);
}

#define KERNEL(name)                                                           \
  { #name, bind < name> }
constexpr test::KernelOnHost kKernels[] = {
    KERNEL(chimeraFoldFloat),     KERNEL(chimeraFoldDouble),
    KERNEL(chimeraFoldBFloat16),  KERNEL(chimeraFoldInteger),
    KERNEL(chimeraScaleFloat),    KERNEL(chimeraScaleDouble),
    KERNEL(chimeraScaleBFloat16), KERNEL(chimeraAdamWFloat),
    KERNEL(chimeraAdamWDouble),   KERNEL(chimeraAdamWBFloat16),
    KERNEL(chimeraKeepElements),  KERNEL(chimeraDropFloat),
    KERNEL(chimeraDropDouble),    KERNEL(chimeraDropBFloat16),
};
} // namespace

std::span<const test::KernelOnHost> test::kernelsOnHost() { return kKernels; }
