//===- SquaredNorm.cpp - The sum of squares of elements -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/SquaredNorm.h"

#include "runtime/device/BFloat16.h"
#include "runtime/system/ParallelFor.h"
#include "runtime/system/VectorWidths.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace chimera::runtime {
namespace {

/// The number of elements whose squares are summed one after another. Threads
/// take whole blocks.
constexpr int64_t kSquaresInBlock = 1 << 14;
/// The minimum number of blocks per thread.
constexpr int64_t kBlocksOfThread = 4;
/// In a block, element i is added to lane i mod kLanes. With a fixed number of
/// lanes, a compiler can vectorise the loop without another order of summation.
constexpr int64_t kLanes = 16;

template <typename T>
[[gnu::always_inline]] inline double sumOfSquaresIn(const T *elements,
                                                    int64_t count) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) {
      const double element = elements[i + k];
      lanes[k] += element * element;
    }
  for (int64_t k = 0; i + k < count; ++k) {
    const double element = elements[i + k];
    lanes[k] += element * element;
  }
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

CHIMERA_FOR_EACH_SIMD_WIDTH double sumOfSquares(const float *elements,
                                                int64_t count) {
  return sumOfSquaresIn(elements, count);
}
CHIMERA_FOR_EACH_SIMD_WIDTH double sumOfSquares(const double *elements,
                                                int64_t count) {
  return sumOfSquaresIn(elements, count);
}

CHIMERA_FOR_EACH_SIMD_WIDTH double sumOfSquares(const BFloat16 *elements,
                                                int64_t count) {
  return sumOfSquaresIn(elements, count);
}

template <typename T> double squaredNormAs(ConstBytes bytes) {
  const auto *elements = reinterpret_cast<const T *>(bytes.data());
  const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
  std::vector<double> blocks((count + kSquaresInBlock - 1) / kSquaresInBlock);
  parallelFor(static_cast<int64_t>(blocks.size()), kBlocksOfThread,
              [&](int64_t begin, int64_t end) {
                for (int64_t block = begin; block < end; ++block) {
                  const int64_t first = block * kSquaresInBlock;
                  blocks[block] =
                      sumOfSquares(elements + first,
                                   std::min(kSquaresInBlock, count - first));
                }
              });
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

} // namespace

double squaredNormOf(program::DataType type, ConstBytes elements) {
  return type == program::DataType::Float64 ? squaredNormAs<double>(elements)
         : type == program::DataType::BFloat16
             ? squaredNormAs<BFloat16>(elements)
             : squaredNormAs<float>(elements);
}

} // namespace chimera::runtime
