//===- Weights.cpp - A model's weights on disk ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// safetensors: a little-endian uint64, the length of a JSON object; the object,
// {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...}, padded with
// spaces so that the data is aligned; the data.
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Weights.h"

#include "runtime/program/Layout.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace chimera::runtime {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the file is written as memory holds it");

// The format's own limit, which keeps a foreign file's first bytes from being
// taken for a length to allocate.
constexpr uint64_t kLargestHeader = 100'000'000;

// The header that a file of the program's weights has. Ordered, so that equal
// weights give equal files.
nlohmann::ordered_json headerOf(const program::ProgramT &program) {
  const program::ModelT &model = *program.model;
  const int64_t elementBytes = program::bytesOf(program.weight_type);
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  int64_t begin = 0;
  for (const auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model))) {
    const int64_t end = begin + parameter.elements() * elementBytes;
    auto &entry =
        header["layers." + std::to_string(layer) + "." + parameter.name];
    entry["dtype"] =
        program.weight_type == program::DataType::Float64 ? "F64" : "F32";
    entry["shape"] = parameter.shape;
    entry["data_offsets"] = {begin, end};
    begin = end;
  }
  return header;
}

// That header as the file holds it, before the data.
std::string paddedHeaderOf(const program::ProgramT &program) {
  std::string header = headerOf(program).dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

uint64_t dataBytesOf(const program::ProgramT &program) {
  return static_cast<uint64_t>(
      program::parameterCount(*program.model, 0,
                              program::layerCount(*program.model)) *
      program::bytesOf(program.weight_type));
}

// Whether there is a model, and `bytes` of weights are what it has.
bool fits(const program::ProgramT &program, size_t bytes, std::string &error) {
  if (!program.model) {
    error = "expected a program with a model, got one of bare stages, which "
            "has no weights to keep";
    return false;
  }
  error = program::checkModel(*program.model);
  if (!error.empty()) {
    error = "model: " + error;
    return false;
  }
  const uint64_t expected = dataBytesOf(program);
  if (bytes != expected) {
    error = "expected the whole model's weights, " + std::to_string(expected) +
            " bytes, got " + std::to_string(bytes);
    return false;
  }
  return true;
}

} // namespace

bool saveWeights(const program::ProgramT &program, ConstBytes weights,
                 const std::string &path, std::string &error,
                 program::Existing existing) {
  if (!fits(program, weights.size(), error))
    return false;
  const std::string header = paddedHeaderOf(program);
  const uint64_t length = header.size();

  return program::writeWhole(
      path,
      {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(header)),
       weights},
      error, [] { return true; }, existing);
}

uint64_t weightsFileBytes(const program::ProgramT &program) {
  return sizeof(uint64_t) + paddedHeaderOf(program).size() +
         dataBytesOf(program);
}

bool loadWeights(const program::ProgramT &program, const std::string &path,
                 Bytes weights, std::string &error) {
  if (!fits(program, weights.size(), error))
    return false;
  auto fail = [&](const std::string &reason) {
    error = "cannot load weights from '" + path + "': " + reason;
    return false;
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? std::streamoff{file.tellg()} : -1;
  if (size < 0)
    return fail(std::strerror(errno));
  file.seekg(0);
  uint64_t length = 0;
  const auto limit = static_cast<uint64_t>(size);
  if (!file.read(reinterpret_cast<char *>(&length), sizeof length) ||
      length > kLargestHeader || length > limit - sizeof length)
    return fail("it is no safetensors file, or a truncated one");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  auto header = nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!file || !header.is_object())
    return fail("it is no safetensors file: its header is no JSON object");

  // Every difference is reported, for one cause shows in many tensors.
  const nlohmann::ordered_json expected = headerOf(program);
  const uint64_t data = limit - sizeof length - length;
  std::string differences;
  auto differs = [&](const std::string &name, const std::string &what) {
    differences += "\n  " + name + ": " + what;
  };
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // in the file's data
  for (const auto &[name, entry] : expected.items()) {
    if (name == "__metadata__")
      continue;
    auto found = header.find(name);
    if (found == header.end() || !found->is_object()) {
      differs(name, "missing");
      continue;
    }
    for (const char *key : {"dtype", "shape"}) {
      std::string want = entry[key].dump();
      std::string got = found->value(key, nlohmann::json()).dump();
      if (got != want)
        differs(name,
                std::string("expected ") + key + " " + want + ", got " + got);
    }
    const nlohmann::json offsets =
        found->value("data_offsets", nlohmann::json());
    const uint64_t bytes = entry["data_offsets"][1].get<uint64_t>() -
                           entry["data_offsets"][0].get<uint64_t>();
    if (!offsets.is_array() || offsets.size() != 2 ||
        !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned() ||
        offsets[1].get<uint64_t>() > data ||
        offsets[0].get<uint64_t>() > offsets[1].get<uint64_t>() ||
        offsets[1].get<uint64_t>() - offsets[0].get<uint64_t>() != bytes)
      differs(name, "expected data_offsets of " + std::to_string(bytes) +
                        " bytes inside the file, got " + offsets.dump());
    else
      ranges.emplace_back(offsets[0].get<uint64_t>(), bytes);
  }
  for (const auto &[name, entry] : header.items())
    if (name != "__metadata__" && !expected.contains(name))
      differs(name, "not a parameter of the program's model");
  if (!differences.empty())
    return fail("it does not fit the program's model:" + differences);

  // Read aside first: a failing read leaves `weights` as they were.
  std::vector<char> loaded(weights.size());
  char *target = loaded.data();
  for (const auto &[begin, bytes] : ranges) {
    file.seekg(static_cast<std::streamoff>(sizeof length + length + begin));
    file.read(target, static_cast<std::streamsize>(bytes));
    target += bytes;
  }
  if (!file)
    return fail(std::strerror(errno));
  std::memcpy(weights.data(), loaded.data(), loaded.size());
  return true;
}

} // namespace chimera::runtime
