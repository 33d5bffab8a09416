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
#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"
#include "runtime/stage/Mix.h"
#include "runtime/stage/torch/ShallowJson.h"
#include "runtime/stage/torch/Transposed.h"
#include "runtime/system/ReadAt.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <set>
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

// A parameter in a file of the program's weights.
struct FileTensor {
  std::string parameter; // its name in the model
  NamedTensor named;
  program::Parameter held; // by the program
  uint64_t begin, end;     // in the data, and in the program's flat weights

  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape = held.shape;
    if (named.isTransposed)
      std::swap(shape[0], shape[1]);
    return shape;
  }
};

std::vector<FileTensor> tensorsOf(const program::ProgramT &program,
                                  const WeightNames &names) {
  const program::ModelT &model = *program.model;
  const int64_t elementBytes = program::bytesOf(program.weight_type);
  std::vector<FileTensor> tensors;
  uint64_t begin = 0;
  for (auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model))) {
    const std::string name = program::parameterName(model, layer, number);
    const uint64_t end =
        begin + static_cast<uint64_t>(parameter.elements() * elementBytes);
    tensors.push_back(
        {name, names.tensorOf(name), std::move(parameter), begin, end});
    begin = end;
  }
  return tensors;
}

std::string typeOf(const program::ProgramT &program) {
  return program.weight_type == program::DataType::Float64 ? "F64" : "F32";
}

// The header of a file of these, before the data. Ordered, so that equal
// weights give equal files.
std::string headerOf(const program::ProgramT &program,
                     const std::vector<FileTensor> &tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  for (const FileTensor &tensor : tensors) {
    auto &entry = header[tensor.named.name];
    entry["dtype"] = typeOf(program);
    entry["shape"] = tensor.shape();
    entry["data_offsets"] = {tensor.begin, tensor.end};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

uint64_t dataBytesOf(const program::ProgramT &program) {
  return static_cast<uint64_t>(
      program::parameterCount(*program.model, 0,
                              program::layerCount(*program.model)) *
      program::bytesOf(program.weight_type));
}

// Whether there is a model, and `bytes` of weights are what it has.
bool fits(const program::ProgramT &program, size_t bytes, std::string &error) {
  error = checkHasWeights(program);
  if (!error.empty())
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

MatrixShape matrixOf(const std::vector<int64_t> &shape,
                     program::DataType type) {
  return {static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1]),
          static_cast<uint64_t>(program::bytesOf(type))};
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
                 const WeightNames &names, program::Existing existing) {
  if (!fits(program, weights.size(), error))
    return false;
  const std::vector<FileTensor> tensors = tensorsOf(program, names);
  const std::string header = headerOf(program, tensors);
  const uint64_t length = header.size();

  auto write = [&](int file) {
    if (!program::writeAll(file, {std::as_bytes(std::span(&length, 1)),
                                  std::as_bytes(std::span(header))}))
      return false;
    auto writeBytes = [&](ConstBytes bytes) {
      return program::writeAll(file, {bytes});
    };
    for (const FileTensor &tensor : tensors) {
      const ConstBytes bytes =
          weights.subspan(tensor.begin, tensor.end - tensor.begin);
      if (!(tensor.named.isTransposed
                ? writeTransposed(
                      matrixOf(tensor.held.shape, program.weight_type), bytes,
                      writeBytes)
                : writeBytes(bytes)))
        return false;
    }
    return true;
  };
  return program::writeWhole(
      path, write, error, [] { return true; }, existing);
}

uint64_t weightsFileBytes(const program::ProgramT &program,
                          const WeightNames &names) {
  return sizeof(uint64_t) +
         headerOf(program, tensorsOf(program, names)).size() +
         dataBytesOf(program);
}

SavedWeights::SavedWeights(const program::ProgramT &program,
                           const std::string &path, const WeightNames &names)
    : path(path), file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  auto fail = [&](const std::string &reason) {
    if (file >= 0)
      ::close(file);
    throw std::runtime_error("cannot load weights from '" + path +
                             "': " + reason);
  };
  if (file < 0)
    fail(std::strerror(errno));
  if (const std::string problem = checkHasWeights(program); !problem.empty())
    fail(problem);
  struct stat status;
  if (::fstat(file, &status) != 0)
    fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail("expected a file");
  uint64_t length = 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (readAt(file, 0, std::as_writable_bytes(std::span(&length, 1))) !=
          sizeof length ||
      length > kLargestHeader || length > size - sizeof length)
    fail("it is no safetensors file, or a truncated one");
  std::string text(length, '\0');
  const ssize_t read =
      readAt(file, sizeof length, std::as_writable_bytes(std::span(text)));
  if (read < 0)
    fail(std::strerror(errno));
  if (static_cast<uint64_t>(read) < length)
    fail("it has become shorter");
  if (!isShallow(text, 3))
    fail("it is no safetensors file: its header nests more than three levels");
  auto header = nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!header.is_object())
    fail("it is no safetensors file: its header is no JSON object");
  headerDigest = program::checksum(std::as_bytes(std::span(text)));

  // Every difference is reported, for one cause shows in many tensors.
  const uint64_t begin = sizeof length + length;
  const uint64_t data = size - begin;
  std::string differences;
  auto differs = [&](const std::string &name, const std::string &what) {
    differences += "\n  " + program::printable(name) + ": " + what;
  };
  std::vector<std::pair<uint64_t, uint64_t>> all; // of the file's ranges
  // The range of a tensor, of `bytes` unless any number will do; none where it
  // differs.
  auto rangeOf = [&](const std::string &name, const nlohmann::json &entry,
                     std::optional<uint64_t> bytes) -> std::optional<Range> {
    const nlohmann::json offsets =
        entry.value("data_offsets", nlohmann::json());
    if (offsets.is_array() && offsets.size() == 2 &&
        offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned()) {
      const auto first = offsets[0].get<uint64_t>();
      const auto last = offsets[1].get<uint64_t>();
      if (first <= last && last <= data &&
          last - first == bytes.value_or(last - first)) {
        all.emplace_back(begin + first, begin + last);
        return Range{begin + first, last - first, false};
      }
    }
    differs(name, "expected data_offsets of " +
                      (bytes ? std::to_string(*bytes) + " " : "") +
                      "bytes inside the file, got " + dumped(offsets));
    return std::nullopt;
  };
  std::set<std::string> known = {"__metadata__"};
  for (const FileTensor &tensor : tensorsOf(program, names)) {
    const auto &[name, isTransposed] = tensor.named;
    known.insert(name);
    auto found = header.find(name);
    if (found == header.end() || !found->is_object()) {
      differs(name, name == tensor.parameter
                        ? "missing"
                        : "missing, for " + tensor.parameter);
      continue;
    }
    const std::pair<const char *, std::string> wanted[] = {
        {"dtype", nlohmann::json(typeOf(program)).dump()},
        {"shape", nlohmann::json(tensor.shape()).dump()}};
    for (const auto &[key, want] : wanted)
      if (const std::string got = dumped(found->value(key, nlohmann::json()));
          got != want)
        differs(name,
                std::string("expected ") + key + " " + want + ", got " + got);
    if (auto range = rangeOf(name, *found, tensor.end - tensor.begin)) {
      range->isTransposed = isTransposed;
      ranges[tensor.parameter] = *range;
    }
  }
  for (const auto &[name, entry] : header.items()) {
    if (known.contains(name))
      continue;
    if (names.isIgnored(name) && entry.is_object())
      rangeOf(name, entry, std::nullopt);
    else
      differs(name, "not a parameter of the program's model");
  }
  if (!differences.empty())
    fail("it does not fit the program's model:" + differences);
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

void SavedWeights::read(const std::string &name, program::DataType type,
                        const std::vector<int64_t> &shape, Bytes memory) const {
  // The constructor has compared types and shapes.
  auto found = ranges.find(name);
  if (found == ranges.end() || found->second.bytes != memory.size() ||
      (found->second.isTransposed && shape.size() != 2))
    throw std::runtime_error("expected " + std::to_string(memory.size()) +
                             " bytes of '" + program::printable(name) +
                             "' in '" + path + "'");
  const Range &range = found->second;
  if (!range.isTransposed)
    return readRange(name, range.begin, memory);
  readTransposed(matrixOf(shape, type), memory,
                 [&](uint64_t offset, Bytes block) {
                   readRange(name, range.begin + offset, block);
                 });
}

void SavedWeights::readRange(const std::string &name, uint64_t begin,
                             Bytes memory) const {
  const ssize_t read = readAt(file, begin, memory);
  if (read < 0 || static_cast<size_t>(read) < memory.size())
    throw std::runtime_error(
        "cannot read '" + program::printable(name) + "' from '" + path +
        "': " + (read < 0 ? std::strerror(errno) : "it has become shorter"));
}

} // namespace chimera::runtime
