//===- SafetensorsHeader.cpp - For writing safetensors files --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/SafetensorsHeader.h"

#include <nlohmann/json.hpp>

#include <bit>

static_assert(std::endian::native == std::endian::little,
              "the file is written as memory holds it");

std::string
chimera::runtime::safetensorsHeader(const std::vector<TensorEntry> &tensors) {
  // Keys are ordered, so that equal weights give equal files.
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  uint64_t begin = 0;
  for (const TensorEntry &tensor : tensors) {
    auto &entry = header[tensor.name];
    entry["dtype"] = tensor.type == program::DataType::Float64 ? "F64" : "F32";
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {begin, begin + tensor.bytes};
    begin += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         text;
}
