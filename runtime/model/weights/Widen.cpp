//===- Widen.cpp - Conversion of file elements to a wider type ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Widen.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstring>

namespace chimera::runtime {
namespace {

constexpr FileType kFloat64{FileType::F64, "F64", 8},
    kFloat32{FileType::F32, "F32", 4}, kBFloat16{FileType::BF16, "BF16", 2},
    kFloat16{FileType::F16, "F16", 2};
constexpr FileType kAsFloat32[] = {kFloat32, kBFloat16, kFloat16};
constexpr FileType kAsFloat64[] = {kFloat64, kFloat32, kBFloat16, kFloat16};

template <typename From, typename To> void convert(ConstBytes from, Bytes to) {
  for (size_t i = 0; i < to.size() / sizeof(To); ++i) {
    From narrow;
    std::memcpy(&narrow, from.data() + i * sizeof narrow, sizeof narrow);
    const To wide = static_cast<To>(static_cast<float>(narrow));
    std::memcpy(to.data() + i * sizeof wide, &wide, sizeof wide);
  }
}

template <typename To>
void widenTo(const FileType &fileType, ConstBytes from, Bytes to) {
  switch (fileType.kind) {
  case FileType::BF16:
    return convert<c10::BFloat16, To>(from, to);
  case FileType::F16:
    return convert<c10::Half, To>(from, to);
  case FileType::F32:
    return convert<float, To>(from, to);
  case FileType::F64:
    break; // no conversion needed
  }
  std::memcpy(to.data(), from.data(), to.size());
}

} // namespace

std::span<const FileType> losslessSources(program::DataType type) {
  return type == program::DataType::Float64
             ? std::span<const FileType>(kAsFloat64)
             : std::span<const FileType>(kAsFloat32);
}

void widen(const FileType &fileType, ConstBytes from, program::DataType type,
           Bytes to) {
  return type == program::DataType::Float64
             ? widenTo<double>(fileType, from, to)
             : widenTo<float>(fileType, from, to);
}

} // namespace chimera::runtime
