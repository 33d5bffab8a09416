//===- FileTypes.h - Types of numbers in files of weights -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_FILETYPES_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_FILETYPES_H

#include "runtime/program/Program.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace chimera::runtime {

/// An element type in safetensors files.
struct FileType {
  enum Kind { F32, F64, BF16, F16 } kind;
  std::string_view name; ///< in a file's header
  uint64_t bytes;
};

/// The file type of numbers of `type`.
const FileType &fileTypeOf(program::DataType type);

/// The file types whose numbers can be converted to `type`. The first one is
/// that of `type` itself. Conversions to Float32 and Float64 are exact.
/// Conversions to BFloat16 round to the nearest number.
std::span<const FileType> convertibleTo(program::DataType type);

/// Whether all conversions to `type` are exact.
inline bool convertsExactly(program::DataType type) {
  return type != program::DataType::BFloat16;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_FILETYPES_H
