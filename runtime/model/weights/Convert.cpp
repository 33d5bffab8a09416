//===- Convert.cpp - Conversion of numbers from files ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Convert.h"

#include "runtime/device/BFloat16.h"

#include <c10/util/Half.h>

#include <cstring>

namespace chimera::runtime {
namespace {

template <typename From, typename To>
void convertAll(ConstBytes from, Bytes to) {
  for (size_t i = 0; i < to.size() / sizeof(To); ++i) {
    From source;
    std::memcpy(&source, from.data() + i * sizeof source, sizeof source);
    const To made = static_cast<To>(static_cast<float>(source));
    std::memcpy(to.data() + i * sizeof made, &made, sizeof made);
  }
}

template <typename To>
void convertTo(const FileType &fileType, ConstBytes from, Bytes to) {
  switch (fileType.kind) {
  case FileType::BF16:
    return convertAll<BFloat16, To>(from, to);
  case FileType::F16:
    return convertAll<c10::Half, To>(from, to);
  case FileType::F32:
    return convertAll<float, To>(from, to);
  case FileType::F64:
    break; // only to float64, so no conversion is needed
  }
  std::memcpy(to.data(), from.data(), to.size());
}

} // namespace

void convert(const FileType &fileType, ConstBytes from, program::DataType type,
             Bytes to) {
  switch (type) {
  case program::DataType::Float64:
    return convertTo<double>(fileType, from, to);
  case program::DataType::BFloat16:
    return convertTo<BFloat16>(fileType, from, to);
  case program::DataType::Float32:
    break;
  }
  convertTo<float>(fileType, from, to);
}

} // namespace chimera::runtime
