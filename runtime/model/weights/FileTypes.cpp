//===- FileTypes.cpp - Types of numbers in files of weights ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/FileTypes.h"

namespace chimera::runtime {
namespace {

constexpr FileType kFloat64{FileType::F64, "F64", 8},
    kFloat32{FileType::F32, "F32", 4}, kBFloat16{FileType::BF16, "BF16", 2},
    kFloat16{FileType::F16, "F16", 2};
constexpr FileType kToFloat32[] = {kFloat32, kBFloat16, kFloat16};
constexpr FileType kToFloat64[] = {kFloat64, kFloat32, kBFloat16, kFloat16};
constexpr FileType kToBFloat16[] = {kBFloat16, kFloat32, kFloat16};

} // namespace

std::span<const FileType> convertibleTo(program::DataType type) {
  switch (type) {
  case program::DataType::Float64:
    return kToFloat64;
  case program::DataType::BFloat16:
    return kToBFloat16;
  case program::DataType::Float32:
    break;
  }
  return kToFloat32;
}

const FileType &fileTypeOf(program::DataType type) {
  return convertibleTo(type).front();
}

} // namespace chimera::runtime
