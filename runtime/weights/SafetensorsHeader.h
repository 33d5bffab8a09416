//===- SafetensorsHeader.h - For writing safetensors files ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For writing safetensors files. runtime/data/Safetensors.h says what such a
// file has.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WEIGHTS_SAFETENSORSHEADER_H
#define CHIMERA_RUNTIME_WEIGHTS_SAFETENSORSHEADER_H

#include "runtime/program/package_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A tensor of float32 or float64.
struct TensorEntry {
  std::string name;
  program::DataType type;
  std::vector<int64_t> shape;
  uint64_t bytes;
};

/// The bytes before the data of a file with these tensors, in this order: the
/// length of the header, and the header. Their number is a multiple of 8. Equal
/// tensors give equal bytes.
std::string safetensorsHeader(const std::vector<TensorEntry> &tensors);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WEIGHTS_SAFETENSORSHEADER_H
