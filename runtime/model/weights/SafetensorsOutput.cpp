//===- SafetensorsOutput.cpp - Writing safetensors files ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/SafetensorsOutput.h"

#include "runtime/model/weights/FileTypes.h"
#include "runtime/model/weights/Transposed.h"
#include "runtime/program/Layers.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <span>

using namespace chimera;
using namespace chimera::runtime;

static_assert(std::endian::native == std::endian::little,
              "the file is written as memory holds it");

/// The bytes before the data: the length of the header, and the header.
static std::string headerOf(const std::vector<OutputTensor> &tensors) {
  // Keys are ordered, so that equal tensors give equal files.
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  uint64_t begin = 0;
  for (const OutputTensor &tensor : tensors) {
    std::vector<int64_t> shape = tensor.shape;
    if (tensor.isTransposed)
      std::swap(shape[0], shape[1]);
    auto &entry = header[tensor.name];
    entry["dtype"] = fileTypeOf(tensor.type).name;
    entry["shape"] = shape;
    entry["data_offsets"] = {begin, begin + tensor.bytes};
    begin += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         text;
}

uint64_t
chimera::runtime::safetensorsBytes(const std::vector<OutputTensor> &tensors) {
  uint64_t bytes = headerOf(tensors).size();
  for (const OutputTensor &tensor : tensors)
    bytes += tensor.bytes;
  return bytes;
}

bool chimera::runtime::writeSafetensors(
    const std::vector<OutputTensor> &tensors, ConstBytes state,
    const std::string &path, std::string &error, program::IfExists ifExists) {
  const std::string header = headerOf(tensors);
  auto write = [&](int file) {
    auto writeBytes = [&](ConstBytes bytes) {
      return program::writeAll(file, {bytes});
    };
    if (!writeBytes(std::as_bytes(std::span(header))))
      return false;
    for (const OutputTensor &tensor : tensors) {
      const ConstBytes bytes = state.subspan(tensor.begin, tensor.bytes);
      auto writeTransposedMatrix = [&] {
        const MatrixShape matrix{
            static_cast<uint64_t>(tensor.shape[0]),
            static_cast<uint64_t>(tensor.shape[1]),
            static_cast<uint64_t>(program::bytesOf(tensor.type))};
        return writeTransposed(matrix, bytes, writeBytes);
      };
      if (!(tensor.isTransposed ? writeTransposedMatrix() : writeBytes(bytes)))
        return false;
    }
    return true;
  };
  return program::writeAtomically(
      path, write, error, [] { return true; }, ifExists);
}
