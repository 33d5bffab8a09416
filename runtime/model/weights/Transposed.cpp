//===- Transposed.cpp - Matrices stored transposed in files ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Transposed.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace chimera::runtime {
namespace {

/// Several whole columns of a matrix, or a part of one column. In the
/// transpose, this is a contiguous range.
struct Block {
  uint64_t column, columns;
  uint64_t row, rows;

  uint64_t elements() const { return columns * rows; }
};

/// Calls `visit` with each block in the transpose's order. Stops and returns
/// false if `visit` returns false.
template <typename Visit>
bool eachBlock(const MatrixShape &shape, Visit visit) {
  const uint64_t most = kBlockBytes / shape.elementBytes;
  const uint64_t rows = std::min(shape.rows, most);
  const uint64_t columns = rows == 0 ? 1 : std::max<uint64_t>(1, most / rows);
  for (uint64_t column = 0; column < shape.columns; column += columns)
    for (uint64_t row = 0; row < shape.rows; row += rows)
      if (!visit(Block{column, std::min(columns, shape.columns - column), row,
                       std::min(rows, shape.rows - row)}))
        return false;
  return true;
}

/// For each element of a block, calls `copy` with its byte offsets in the
/// matrix and in the block.
template <typename Copy>
void eachElement(const MatrixShape &shape, const Block &block, Copy copy) {
  for (uint64_t row = 0; row < block.rows; ++row)
    for (uint64_t column = 0; column < block.columns; ++column)
      copy(((block.row + row) * shape.columns + block.column + column) *
               shape.elementBytes,
           (column * block.rows + row) * shape.elementBytes);
}

void copyElement(std::byte *to, const std::byte *from, uint64_t bytes) {
  // Pass constant sizes, so that memcpy is compiled to a single move.
  if (bytes == 2)
    std::memcpy(to, from, 2);
  else if (bytes == 4)
    std::memcpy(to, from, 4);
  else
    std::memcpy(to, from, 8);
}

void check(const MatrixShape &shape, size_t bytes) {
  if ((shape.elementBytes != 2 && shape.elementBytes != 4 &&
       shape.elementBytes != 8) ||
      shape.rows * shape.columns * shape.elementBytes != bytes)
    throw std::invalid_argument("expected a matrix's bytes, got " +
                                std::to_string(bytes));
}

} // namespace

void readTransposed(const MatrixShape &shape, Bytes matrix,
                    const std::function<void(uint64_t, Bytes)> &read) {
  check(shape, matrix.size());
  std::vector<std::byte> bytes(std::min<uint64_t>(kBlockBytes, matrix.size()));
  eachBlock(shape, [&](const Block &block) {
    read((block.column * shape.rows + block.row) * shape.elementBytes,
         Bytes(bytes).first(block.elements() * shape.elementBytes));
    eachElement(shape, block, [&](uint64_t inMatrix, uint64_t inBlock) {
      copyElement(&matrix[inMatrix], &bytes[inBlock], shape.elementBytes);
    });
    return true;
  });
}

bool writeTransposed(const MatrixShape &shape, ConstBytes matrix,
                     const std::function<bool(ConstBytes)> &write) {
  check(shape, matrix.size());
  std::vector<std::byte> bytes(std::min<uint64_t>(kBlockBytes, matrix.size()));
  return eachBlock(shape, [&](const Block &block) {
    eachElement(shape, block, [&](uint64_t inMatrix, uint64_t inBlock) {
      copyElement(&bytes[inBlock], &matrix[inMatrix], shape.elementBytes);
    });
    return write(
        ConstBytes(bytes).first(block.elements() * shape.elementBytes));
  });
}

} // namespace chimera::runtime
