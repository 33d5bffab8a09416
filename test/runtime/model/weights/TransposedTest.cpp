//===- TransposedTest.cpp - Matrices that are transposed in files ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Transposed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace chimera::runtime {
namespace {

// Writes the transpose of a matrix, checks each element, and reads the matrix
// back.
template <typename T> void roundTrip(size_t rows, size_t columns) {
  std::vector<T> matrix(rows * columns), transpose, read(matrix.size());
  std::iota(matrix.begin(), matrix.end(), T(1));
  const MatrixShape shape{rows, columns, sizeof(T)};
  EXPECT_TRUE(writeTransposed(
      shape, std::as_bytes(std::span(matrix)), [&](ConstBytes block) {
        EXPECT_LE(block.size(), kBlockBytes);
        const auto *first = reinterpret_cast<const T *>(block.data());
        transpose.insert(transpose.end(), first,
                         first + block.size() / sizeof(T));
        return true;
      }));
  ASSERT_EQ(transpose.size(), matrix.size());
  size_t wrong = 0;
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      wrong += transpose[column * rows + row] != matrix[row * columns + column];
  EXPECT_EQ(wrong, 0u);
  readTransposed(shape, std::as_writable_bytes(std::span(read)),
                 [&](uint64_t offset, Bytes block) {
                   EXPECT_LE(block.size(), kBlockBytes);
                   const ConstBytes all = std::as_bytes(std::span(transpose));
                   ASSERT_LE(offset + block.size(), all.size());
                   std::copy_n(&all[offset], block.size(), block.data());
                 });
  EXPECT_TRUE(read == matrix);
}

TEST(TransposedTest, roundTripInOneBlock) {
  roundTrip<uint16_t>(3, 5);
  roundTrip<uint32_t>(3, 5);
  roundTrip<uint64_t>(5, 3);
  roundTrip<uint64_t>(1, 1);
  roundTrip<uint32_t>(0, 3);
  roundTrip<uint32_t>(3, 0);
}

TEST(TransposedTest, roundTripInBlocksOfColumns) {
  roundTrip<uint16_t>(1000, 700);
  roundTrip<uint32_t>(1000, 700);
  roundTrip<uint64_t>(kBlockBytes / 8, 3);
}

TEST(TransposedTest, roundTripInPartsOfColumns) {
  roundTrip<uint32_t>(kBlockBytes / 4 + 1, 3);
  roundTrip<uint64_t>(kBlockBytes / 8 * 2 + 7, 2);
}

TEST(TransposedTest, endsWhereNothingMoreIsWritten) {
  const std::vector<uint32_t> matrix(kBlockBytes);
  int blocks = 0;
  EXPECT_FALSE(writeTransposed({kBlockBytes / 2, 2, 4},
                               std::as_bytes(std::span(matrix)),
                               [&](ConstBytes) { return ++blocks < 2; }));
  EXPECT_EQ(blocks, 2);
}

TEST(TransposedTest, refusesBytesThatAreNoMatrix) {
  std::vector<std::byte> bytes(24);
  for (const MatrixShape &shape :
       {MatrixShape{2, 4, 4}, MatrixShape{3, 8, 1}, MatrixShape{0, 0, 0}})
    EXPECT_THROW(readTransposed(shape, bytes, [](uint64_t, Bytes) { FAIL(); }),
                 std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
