//===- Widen.h - Elements of files in a wider type --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_WIDEN_H
#define CHIMERA_RUNTIME_STAGE_TORCH_WIDEN_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <optional>
#include <span>
#include <string_view>

namespace chimera::runtime {

/// A type of elements in safetensors files.
struct FileType {
  enum Kind { F32, F64, BF16, F16 } kind;
  std::string_view name; ///< in a header
  uint64_t bytes;
};

/// The types whose values are all values of weights of `type`, which is Float32
/// or Float64: that type first.
std::span<const FileType> readableAs(program::DataType type);

/// Fills `to` with elements of `type` that are those of `from`, which has as
/// many, exactly. Requires a type that is readable.
void widen(const FileType &fileType, ConstBytes from, program::DataType type,
           Bytes to);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_WIDEN_H
