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

#include "runtime/program/File.h"
#include "runtime/program/Layout.h"
#include "runtime/program/Printable.h"
#include "runtime/stage/Mix.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

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
    auto &entry = header[program::parameterName(model, layer, number)];
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

// Whether there is a model, which has weights.
bool hasWeights(const program::ProgramT &program, std::string &error) {
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
  return true;
}

// Whether there is a model, and `bytes` of weights are what it has.
bool fits(const program::ProgramT &program, size_t bytes, std::string &error) {
  if (!hasWeights(program, error))
    return false;
  const uint64_t expected = dataBytesOf(program);
  if (bytes != expected) {
    error = "expected the whole model's weights, " + std::to_string(expected) +
            " bytes, got " + std::to_string(bytes);
    return false;
  }
  return true;
}

// A text for people of what a file says, whatever bytes that are.
std::string dumped(const nlohmann::json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Whether no value of a JSON text is inside more than three others, as none of
// the format's is. Copies and texts of a value take stack for each level.
bool isShallow(const std::string &text) {
  int depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size() && depth <= 3; ++i) {
    if (text[i] == '"')
      isString = !isString;
    else if (isString)
      i += text[i] == '\\';
    else if (text[i] == '[' || text[i] == '{')
      ++depth;
    else if (text[i] == ']' || text[i] == '}')
      --depth;
  }
  return depth <= 3;
}

// Fills `memory` from the file. False, with errno set or 0 at its end, where it
// cannot.
bool readAt(int file, uint64_t offset, Bytes memory) {
  size_t filled = 0;
  while (filled < memory.size()) {
    const ssize_t count =
        ::pread(file, memory.data() + filled, memory.size() - filled,
                static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    filled += static_cast<size_t>(count);
  }
  return true;
}

// Whether the ranges, in any order, are the bytes from `begin` to `end`, each
// once, as the format demands.
bool fill(std::vector<std::pair<uint64_t, uint64_t>> ranges, uint64_t begin,
          uint64_t end) {
  std::sort(ranges.begin(), ranges.end());
  for (const auto &[first, last] : ranges) {
    if (first != begin)
      return false;
    begin = last;
  }
  return begin == end;
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

SavedWeights::SavedWeights(const program::ProgramT &program,
                           const std::string &path)
    : path(path), file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  auto fail = [&](const std::string &reason) {
    if (file >= 0)
      ::close(file);
    throw std::runtime_error("cannot load weights from '" + path +
                             "': " + reason);
  };
  std::string error;
  if (file < 0)
    fail(std::strerror(errno));
  if (!hasWeights(program, error))
    fail(error);
  struct stat status;
  if (::fstat(file, &status) != 0)
    fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail("expected a file");
  uint64_t length = 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!readAt(file, 0, std::as_writable_bytes(std::span(&length, 1))) ||
      length > kLargestHeader || length > size - sizeof length)
    fail("it is no safetensors file, or a truncated one");
  std::string text(length, '\0');
  if (!readAt(file, sizeof length, std::as_writable_bytes(std::span(text))))
    fail(std::strerror(errno));
  if (!isShallow(text))
    fail("it is no safetensors file: its header nests more than three levels");
  auto header = nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!header.is_object())
    fail("it is no safetensors file: its header is no JSON object");
  headerDigest = program::checksum(std::as_bytes(std::span(text)));

  // Every difference is reported, for one cause shows in many tensors.
  const nlohmann::ordered_json expected = headerOf(program);
  const uint64_t begin = sizeof length + length;
  const uint64_t data = size - begin;
  std::string differences;
  auto differs = [&](const std::string &name, const std::string &what) {
    differences += "\n  " + program::printable(name) + ": " + what;
  };
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
      std::string got = dumped(found->value(key, nlohmann::json()));
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
                        " bytes inside the file, got " + dumped(offsets));
    else
      ranges[name] = {begin + offsets[0].get<uint64_t>(), bytes};
  }
  for (const auto &[name, entry] : header.items())
    if (name != "__metadata__" && !expected.contains(name))
      differs(name, "not a parameter of the program's model");
  if (!differences.empty())
    fail("it does not fit the program's model:" + differences);
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const auto &[name, range] : ranges)
    all.emplace_back(range.begin, range.begin + range.bytes);
  if (!fill(std::move(all), begin, size))
    fail("it is no safetensors file: its tensors share bytes or leave some");
}

SavedWeights::~SavedWeights() { ::close(file); }

uint64_t SavedWeights::digest() const {
  constexpr uint64_t kBlock = 4096;
  uint64_t state = headerDigest;
  std::vector<std::byte> block;
  for (const auto &[name, range] : ranges) {
    const uint64_t size = std::min(range.bytes, kBlock);
    const uint64_t last = range.bytes - size;
    block.resize(size);
    for (uint64_t begin : {uint64_t{0}, last / 2, last}) {
      readRange(name, range.begin + begin, block);
      state = mix({state, program::checksum(block)});
    }
  }
  return state;
}

void SavedWeights::read(const std::string &name, program::DataType,
                        const std::vector<int64_t> &, Bytes memory) const {
  // The constructor has compared types and shapes.
  auto found = ranges.find(name);
  if (found == ranges.end() || found->second.bytes != memory.size())
    throw std::runtime_error("expected " + std::to_string(memory.size()) +
                             " bytes of '" + program::printable(name) +
                             "' in '" + path + "'");
  readRange(name, found->second.begin, memory);
}

void SavedWeights::readRange(const std::string &name, uint64_t begin,
                             Bytes memory) const {
  errno = 0;
  if (!readAt(file, begin, memory))
    throw std::runtime_error(
        "cannot read '" + program::printable(name) + "' from '" + path +
        "': " + (errno ? std::strerror(errno) : "the file has become shorter"));
}

} // namespace chimera::runtime
