//===- WeightFiles.cpp - Files of weights ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See TensorFiles.h for the file format.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/WeightFiles.h"

#include "runtime/model/weights/Convert.h"
#include "runtime/model/weights/Finite.h"
#include "runtime/model/weights/SafetensorsOutput.h"
#include "runtime/model/weights/Transposed.h"
#include "runtime/program/File.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Mix.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

namespace chimera::runtime {
namespace {

// A parameter in a file of the program's weights.
struct FileTensor {
  std::string parameter; // its name in the model
  NamedTensor named;
  program::Parameter held; // as the program describes it
  // The range of bytes in the file's data, and also in the flat weights.
  uint64_t begin, end;

  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape = held.shape;
    if (named.isTransposed)
      std::swap(shape[0], shape[1]);
    return shape;
  }
};

std::vector<FileTensor> tensorsOf(const program::ProgramT &program,
                                  const WeightNames &names) {
  const program::PackageT &model = *program.model;
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

std::vector<OutputTensor> outputsOf(const program::ProgramT &program,
                                    const WeightNames &names) {
  std::vector<OutputTensor> outputs;
  for (FileTensor &tensor : tensorsOf(program, names))
    outputs.push_back({tensor.named.name, program.weight_type,
                       std::move(tensor.held.shape), tensor.named.isTransposed,
                       tensor.begin, tensor.end - tensor.begin});
  return outputs;
}

// The number of the tied parameter within the first layer of a tied model.
size_t tiedNumber(const program::ProgramT &program) {
  const program::PackageT &model = *program.model;
  const uint32_t last = program::layerCount(model) - 1;
  for (uint32_t number = 0;; ++number)
    if (const program::ParameterId start =
            program::initialValueSource(model, last, number);
        start.layer != last || start.number != number)
      return start.number; // the first layer's parameters are first in the file
}

uint64_t dataBytesOf(const program::ProgramT &program) {
  return static_cast<uint64_t>(
      program::parameterCount(*program.model, 0,
                              program::layerCount(*program.model)) *
      program::bytesOf(program.weight_type));
}

// Whether the program has a model whose weights have `bytes` bytes.
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

MatrixShape matrixOf(const std::vector<int64_t> &shape,
                     program::DataType type) {
  return {static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1]),
          static_cast<uint64_t>(program::bytesOf(type))};
}

// A list such as: "F32", "BF16" or "F16".
std::string listed(std::span<const FileType> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    text += (i == 0                  ? "\""
             : i + 1 == types.size() ? " or \""
                                     : ", \"") +
            std::string(types[i].name) + "\"";
  return text;
}

} // namespace

bool saveWeights(const program::ProgramT &program, ConstBytes weights,
                 const std::string &path, std::string &error,
                 const WeightNames &names, program::IfExists ifExists) {
  if (!fits(program, weights.size(), error))
    return false;
  return writeSafetensors(outputsOf(program, names), weights, path, error,
                          ifExists);
}

uint64_t weightsFileBytes(const program::ProgramT &program,
                          const WeightNames &names) {
  return safetensorsBytes(outputsOf(program, names));
}

LoadedWeights::LoadedWeights(const program::ProgramT &program,
                             const std::string &path, const WeightNames &names)
    : path(path), type(program.weight_type), files(path) {
  auto fail = [&](const std::string &reason) {
    throw std::runtime_error("cannot load weights from '" + path +
                             "': " + reason);
  };
  if (const std::string problem = checkHasWeights(program); !problem.empty())
    fail(problem);

  // Collect all differences for one message: a single mistake often affects
  // many tensors.
  std::string differences;
  auto differs = [&](const std::string &name, const std::string &what) {
    differences += "\n  " + program::printable(name) + ": " + what;
  };
  const std::span<const FileType> types = convertibleTo(type);
  // For each wrong type: the number of tensors with this type, and the name of
  // the first such tensor.
  std::map<std::string, std::pair<size_t, std::string>> ofOtherTypes;
  auto typeOf = [&](const std::string &name,
                    const TensorFiles::Tensor &tensor) -> const FileType * {
    for (const FileType &each : types)
      if (tensor.type == "\"" + std::string(each.name) + "\"")
        return &each;
    ++ofOtherTypes.try_emplace(tensor.type, 0, name).first->second.first;
    return nullptr;
  };
  auto expectRange = [&](const std::string &name,
                         const TensorFiles::Tensor &tensor,
                         std::optional<uint64_t> bytes) {
    if (tensor.range &&
        tensor.range->second - tensor.range->first ==
            bytes.value_or(tensor.range->second - tensor.range->first))
      return true;
    differs(name, "expected data_offsets of " +
                      (bytes ? std::to_string(*bytes) + " " : "") +
                      "bytes inside the file, got " + tensor.offsets);
    return false;
  };

  std::set<std::string> known;
  const std::vector<FileTensor> expected = tensorsOf(program, names);
  for (const FileTensor &tensor : expected) {
    const auto &[name, isTransposed] = tensor.named;
    known.insert(name);
    const auto found = files.tensors().find(name);
    if (found == files.tensors().end() || !found->second.isObject) {
      differs(name, name == tensor.parameter
                        ? "missing"
                        : "missing, for " + tensor.parameter);
      continue;
    }
    const TensorFiles::Tensor &there = found->second;
    const FileType *fileType = typeOf(name, there);
    if (const std::string shape = nlohmann::json(tensor.shape()).dump();
        there.shape != shape)
      differs(name, "expected shape " + shape + ", got " + there.shape);
    if (!fileType)
      continue;
    const auto elements = static_cast<uint64_t>(tensor.held.elements());
    if (!expectRange(name, there, elements * fileType->bytes))
      continue;
    ranges[tensor.parameter] = {there.file, there.range->first, elements,
                                fileType, isTransposed};
    if (fileType != &types.front())
      ++converted[fileType->name];
  }
  // Accept a second copy of a tied model's matrix, which some checkpoints have.
  const FileTensor *tied = program::isTied(*program.model)
                               ? &expected[tiedNumber(program)]
                               : nullptr;
  for (const auto &[name, tensor] : files.tensors()) {
    if (known.contains(name))
      continue;
    if (names.isIgnored(name) && tensor.isObject) {
      expectRange(name, tensor, std::nullopt);
      continue;
    }
    const auto first = tied ? ranges.find(tied->parameter) : ranges.end();
    if (first == ranges.end() ||
        tensor.shape != nlohmann::json(tied->shape()).dump()) {
      differs(name, "not a parameter of the program's model");
      continue;
    }
    const FileType *fileType = typeOf(name, tensor);
    if (!fileType ||
        !expectRange(name, tensor, first->second.elements * fileType->bytes))
      continue;
    if (!areEqual(first->second, {tensor.file, tensor.range->first,
                                  first->second.elements, fileType, false}))
      differs(name, "expected the same values as in " +
                        program::printable(tied->named.name) +
                        ", because the program's model ties the two");
  }
  for (const auto &[got, those] : ofOtherTypes)
    differs(those.second,
            "expected dtype " + listed(types) + ", got " + got +
                (those.first > 1
                     ? ", and so in " + program::countWithNoun(those.first - 1,
                                                               "other tensor")
                     : "") +
                (got == "F64" ? ". chimera-export --type float32 converts the "
                                "parameters of a package"
                              : ""));
  if (!differences.empty())
    fail("it does not fit the program's model:" + differences);
  if (const std::string file = files.fileWithGaps(); !file.empty())
    fail((file == path ? "it" : "'" + file + "'") +
         std::string(" is no safetensors file: its tensors overlap or "
                     "leave gaps"));
}

std::string LoadedWeights::conversion() const {
  std::string text;
  for (const auto &[from, count] : converted)
    text += (text.empty() ? "" : ", ") +
            program::countWithNoun(count, "tensor") + " of " +
            std::string(from);
  if (text.empty())
    return "";
  const std::string to(fileTypeOf(type).name);
  return text + (convertsExactly(type) ? ", converted to " + to + " exactly"
                                       : ", rounded to " + to);
}

uint64_t LoadedWeights::digest() const {
  constexpr uint64_t kBlock = 4096;
  uint64_t state = files.digest();
  std::vector<std::byte> block;
  for (const auto &[name, range] : ranges) {
    const uint64_t bytes = range.elements * range.type->bytes;
    const uint64_t size = std::min(bytes, kBlock);
    const uint64_t last = bytes - size;
    block.resize(size);
    for (uint64_t begin : {uint64_t{0}, last / 2, last}) {
      files.read(range.file, range.begin + begin, block, name);
      state = mix({state, program::checksum(block)});
    }
  }
  return state;
}

void LoadedWeights::read(const std::string &name, program::DataType wanted,
                         const std::vector<int64_t> &shape,
                         Bytes memory) const {
  // The constructor has compared the file with the program's model. So check
  // only that the caller asks for a parameter of that model.
  const auto found = ranges.find(name);
  const auto elementBytes = static_cast<uint64_t>(program::bytesOf(type));
  if (found == ranges.end() || wanted != type ||
      found->second.elements * elementBytes != memory.size() ||
      (found->second.isTransposed && shape.size() != 2))
    throw std::runtime_error("expected " + std::to_string(memory.size()) +
                             " bytes of '" + program::printable(name) +
                             "' in '" + path + "'");
  const Range &range = found->second;
  if (range.isTransposed)
    readTransposed(matrixOf(shape, type), memory,
                   [&](uint64_t offset, Bytes block) {
                     readElements(name, range, offset / elementBytes, block);
                   });
  else
    readElements(name, range, 0, memory);
  if (!areFinite(type, memory))
    throw std::runtime_error("expected finite numbers in '" +
                             program::printable(name) + "' in '" + path +
                             "', got NaN or infinity");
}

void LoadedWeights::readElements(const std::string &name, const Range &range,
                                 uint64_t first, Bytes memory) const {
  const uint64_t bytes = range.type->bytes;
  if (range.type == &fileTypeOf(type))
    return files.read(range.file, range.begin + first * bytes, memory, name);
  const auto each = static_cast<uint64_t>(program::bytesOf(type));
  std::vector<std::byte> block;
  for (uint64_t at = 0; at < memory.size() / each;) {
    const uint64_t count =
        std::min(memory.size() / each - at, kBlockBytes / bytes);
    block.resize(count * bytes);
    files.read(range.file, range.begin + (first + at) * bytes, block, name);
    convert(*range.type, block, type, memory.subspan(at * each, count * each));
    at += count;
  }
}

bool LoadedWeights::areEqual(const Range &one, const Range &other) const {
  const auto each = static_cast<uint64_t>(program::bytesOf(type));
  std::vector<std::byte> left, right;
  for (uint64_t at = 0; at < one.elements;) {
    const uint64_t count = std::min(one.elements - at, kBlockBytes / each);
    left.resize(count * each);
    right.resize(count * each);
    readElements("the tied parameter", one, at, left);
    readElements("the tied parameter", other, at, right);
    if (left != right)
      return false;
    at += count;
  }
  return true;
}

} // namespace chimera::runtime
