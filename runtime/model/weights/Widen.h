//===- Widen.h - Conversion of file elements to a wider type ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_WIDEN_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_WIDEN_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <optional>
#include <span>
#include <string_view>

namespace chimera::runtime {

/// An element type in safetensors files.
struct FileType {
  enum Kind { F32, F64, BF16, F16 } kind;
  std::string_view name; ///< in a file's header
  uint64_t bytes;
};

/// The file types whose values can be converted exactly to `type`, which is
/// Float32 or Float64. The first one is `type` itself.
std::span<const FileType> losslessSources(program::DataType type);

/// Converts all elements of `from` to `type`, exactly. Requires a file type in
/// losslessSources(type), and as many elements in `to` as in `from`.
void widen(const FileType &fileType, ConstBytes from, program::DataType type,
           Bytes to);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_WIDEN_H
