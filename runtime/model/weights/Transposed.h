//===- Transposed.h - Matrices stored transposed in files -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In memory, a matrix is row-major. In the file, its transpose is row-major:
// the columns of the matrix, one after another. The functions read and write
// blocks of at most kBlockBytes, so they need at most kBlockBytes of temporary
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_TRANSPOSED_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_TRANSPOSED_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <functional>

namespace chimera::runtime {

inline constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

/// The shape of a matrix, and the size of its elements: 2, 4 or 8 bytes.
struct MatrixShape {
  uint64_t rows, columns, elementBytes;
};

/// Fills `matrix` from its transpose in a file. `read(offset, block)` must fill
/// the block with the bytes of the transpose from byte `offset` on.
void readTransposed(const MatrixShape &shape, Bytes matrix,
                    const std::function<void(uint64_t, Bytes)> &read);

/// Calls `write` with the blocks of the transpose, in order. Stops and returns
/// false if `write` returns false.
bool writeTransposed(const MatrixShape &shape, ConstBytes matrix,
                     const std::function<bool(ConstBytes)> &write);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_TRANSPOSED_H
