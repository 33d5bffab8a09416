//===- CurandTest.cpp - Dropout compared with cuRAND ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares dropout with cuRAND's own generator, compiled for the host. The
// tests use the generator as LibTorch's memory-efficient attention does:
// initialise it once for a matrix of probabilities, skip ahead to the first
// element of a thread, and draw four numbers at a time.
//
//===----------------------------------------------------------------------===//

#include "runtime/random/Philox.h"

#include <cuda_runtime.h>
#define QUALIFIERS [[maybe_unused]] static inline
#include <curand_kernel.h>

#include <gtest/gtest.h>

#include <memory>

using namespace chimera::runtime;

namespace {
TEST(Curand, DropsWhatWeDrop) {
  constexpr uint64_t kKey = 0xfedcba9876543210;
  constexpr uint64_t kCount = 8000;
  for (uint64_t first : {uint64_t(0), uint64_t(4), (uint64_t(1) << 34) + 8})
    for (double dropped : {0., 0.1, 0.25, 0.9})
      // The lengths of rows. 50 and 201 are not multiples of 4, so some rows
      // start in the middle of the four numbers of a counter.
      for (uint64_t row : {36, 50, 201}) {
        std::unique_ptr<bool[]> kept(new bool[kCount]);
        computeDropoutMask(dropped, kKey, first, kCount, kept.get());
        curandStatePhilox4_32_10_t begun;
        curand_init(kKey, 0, first, &begun);
        for (uint64_t start = 0; start < kCount; start += row) {
          curandStatePhilox4_32_10_t state = begun;
          skipahead(static_cast<unsigned long long>(start), &state);
          const uint64_t end = std::min(start + row, kCount);
          for (uint64_t i = start; i < end; i += 4) {
            const float4 draws = curand_uniform4(&state);
            const float each[] = {draws.x, draws.y, draws.z, draws.w};
            for (uint64_t k = 0; k < std::min<uint64_t>(4, end - i); ++k)
              ASSERT_EQ(kept[i + k], each[k] > static_cast<float>(dropped))
                  << "element " << i + k << " from " << first;
          }
        }
      }
}
} // namespace
