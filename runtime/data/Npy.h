//===- Npy.h - An array in NumPy's file format ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .npy file (numpy.lib.format) consists of a magic number and a version, the
// length of the header, the header, and the elements. The header is a Python
// dictionary as text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_NPY_H
#define CHIMERA_RUNTIME_DATA_NPY_H

#include "runtime/data/InputFile.h"
#include "runtime/program/Fields.h"

#include <cstdint>
#include <vector>

namespace chimera::runtime {

/// The description of an array whose elements are in row-major order.
struct NpyHeader {
  program::TensorType type;
  std::vector<int64_t> shape;
  uint64_t begin; ///< the offset of the first element in the file, in bytes
};

/// Reads the header of a .npy file: the `bytes` bytes of `file` from `begin`
/// on. Throws std::runtime_error (InputFile::fail) if they have no valid
/// header, if the elements are no little-endian numbers or booleans of a type
/// in TensorType, if they are in column-major order, or if there are more or
/// fewer elements than the header says. Requires that the file has these bytes.
NpyHeader readNpyHeader(const InputFile &file, uint64_t begin, uint64_t bytes);
/// The same for a whole file.
inline NpyHeader readNpyHeader(const InputFile &file) {
  return readNpyHeader(file, 0, file.size());
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_NPY_H
