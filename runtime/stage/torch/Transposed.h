//===- Transposed.h - Matrices that files hold transposed -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matrix of memory is row-major. Its transpose is row-major in a file: the
// matrix's columns, one after another. They are read and written in blocks of
// at most kBlockBytes, which is all the memory that these functions take.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TRANSPOSED_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TRANSPOSED_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <functional>

namespace chimera::runtime {

inline constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

/// A matrix of elements of 4 or 8 bytes.
struct MatrixShape {
  uint64_t rows, columns, elementBytes;
};

/// Fills the matrix. `read` fills a block with what the transpose has at so
/// many bytes from its begin.
void readTransposed(const MatrixShape &shape, Bytes matrix,
                    const std::function<void(uint64_t, Bytes)> &read);

/// Gives the blocks of the transpose, one after another, to `write`, until it
/// gives false, which is then what this gives too.
bool writeTransposed(const MatrixShape &shape, ConstBytes matrix,
                     const std::function<bool(ConstBytes)> &write);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TRANSPOSED_H
