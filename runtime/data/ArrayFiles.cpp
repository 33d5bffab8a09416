//===- ArrayFiles.cpp - The fields of samples as arrays in files ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ArrayFiles.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Safetensors.h"
#include "runtime/data/Zip.h"
#include "runtime/program/File.h"
#include "runtime/program/Package.h"
#include "runtime/program/Printable.h"
#include "runtime/random/Mix.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using program::Field;
using program::TensorType;

namespace {

constexpr char kFailure[] = "cannot train on the arrays in";

/// The type's name in safetensors files.
const char *safetensorsName(TensorType type) {
  switch (type) {
  case TensorType::Boolean:
    return "BOOL";
  case TensorType::UInt8:
    return "U8";
  case TensorType::Int8:
    return "I8";
  case TensorType::Int16:
    return "I16";
  case TensorType::Int32:
    return "I32";
  case TensorType::Int64:
    return "I64";
  case TensorType::Float16:
    return "F16";
  case TensorType::BFloat16:
    return "BF16";
  case TensorType::Float32:
    return "F32";
  case TensorType::Float64:
    return "F64";
  }
  return "";
}

/// A shape as JSON. A negative first extent is written as "samples".
std::string shapeText(std::vector<int64_t> shape) {
  std::string text = "[";
  for (int64_t extent : shape)
    text += (text.size() > 1 ? "," : "") +
            (extent < 0 ? "samples" : std::to_string(extent));
  return text + "]";
}

std::string inQuotes(const std::string &name) {
  return "'" + program::printable(name) + "'";
}

/// The fields' names for messages: "'pixels', 'labels'".
std::string namesOf(std::span<const Field> fields) {
  std::string text;
  for (const Field &field : fields)
    text += (text.empty() ? "" : ", ") + inQuotes(field.name);
  return text;
}

/// The names of the arrays in a file, or "none". There may be many.
std::string namesOfArrays(const std::vector<std::string> &names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + inQuotes(names[i]);
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " more";
  return names.empty() ? "none" : text;
}

/// How to train on an array of one dimension that is a text of tokens.
constexpr char kTokensAlone[] =
    ": to train on a list of tokens, write its numbers alone (in Python "
    "array.astype('uint16').tofile('tokens.bin')) and give that with --tokens "
    "uint16";

/// The number of samples in an array for `field`. Throws (InputFile::fail) if
/// the type or the shape is not the field's. `foundType` is the type in the
/// words of the file's format, which says `wantedType` for the field's type.
uint64_t samplesOf(const InputFile &file, const Field &field,
                   const std::string &wantedType, const std::string &foundType,
                   const std::vector<int64_t> &shape) {
  std::vector<int64_t> wanted = field.shape;
  wanted.insert(wanted.begin(), -1);
  const bool fits = shape.size() == wanted.size() &&
                    std::equal(shape.begin() + 1, shape.end(),
                               wanted.begin() + 1, wanted.end());
  const bool isList = shape.size() == 1 && field.shape.size() == 1 &&
                      field.type == program::TensorType::Int64;
  if (!fits || foundType != wantedType)
    file.fail("expected " + wantedType + " numbers of shape " +
              shapeText(wanted) + " for the model's " + inQuotes(field.name) +
              ", got " + program::printable(foundType) + " of shape " +
              shapeText(shape) + (isList ? kTokensAlone : ""));
  return static_cast<uint64_t>(shape.front());
}

/// Checks that each field of a file has as many samples. Requires a call for
/// each field.
class EqualSamples {
public:
  explicit EqualSamples(const InputFile &file) : file(file) {}
  void add(const Field &field, uint64_t samples) {
    if (first && first->second != samples)
      file.fail("expected as many samples in each field, got " +
                std::to_string(first->second) + " of " +
                inQuotes(first->first) + " and " + std::to_string(samples) +
                " of " + inQuotes(field.name));
    first = {field.name, samples};
  }

private:
  const InputFile &file;
  std::optional<std::pair<std::string, uint64_t>> first;
};

void addNpz(const ArrayFileName &name, std::span<const Field> fields,
            std::vector<ArrayField> &arrays) {
  const auto file = std::make_shared<InputFile>(name.path, kFailure);
  const std::vector<ZipMember> members = readZipDirectory(*file);
  EqualSamples equal(*file);
  bool hasAny = false;
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto member =
        std::ranges::find(members, fields[i].name + ".npy", &ZipMember::name);
    if (member == members.end())
      continue;
    const NpyHeader header = readNpyHeader(*file, member->begin, member->bytes);
    const uint64_t samples =
        samplesOf(*file, fields[i], program::nameOf(fields[i].type),
                  program::nameOf(header.type), header.shape);
    equal.add(fields[i], samples);
    arrays[i].add(file, header.begin, samples);
    hasAny = true;
  }
  std::vector<std::string> names;
  for (const ZipMember &member : members)
    names.push_back(member.name.substr(0, member.name.rfind(".npy")));
  if (!hasAny)
    file->fail("expected an array for one of the model's fields " +
               namesOf(fields) + ", got " + namesOfArrays(names));
}

void addNpy(const ArrayFileName &name, std::span<const Field> fields,
            std::vector<ArrayField> &arrays) {
  const auto file = std::make_shared<InputFile>(name.path, kFailure);
  const auto field = std::ranges::find(fields, name.field, &Field::name);
  if (field == fields.end())
    file->fail((name.field.empty()
                    ? "a .npy file does not name its array: give FIELD=FILE.npy"
                    : "the model has no field " + inQuotes(name.field) +
                          ": give FIELD=FILE.npy") +
               (", where FIELD is one of " + namesOf(fields)));
  const NpyHeader header = readNpyHeader(*file);
  const uint64_t samples =
      samplesOf(*file, *field, program::nameOf(field->type),
                program::nameOf(header.type), header.shape);
  arrays[static_cast<size_t>(field - fields.begin())].add(file, header.begin,
                                                          samples);
}

/// The shape that a safetensors header states. None if it is no list of small
/// numbers of at least 0.
std::optional<std::vector<int64_t>> shapeOf(const std::string &text) {
  const auto shape = nlohmann::json::parse(text, nullptr, false);
  if (!shape.is_array())
    return std::nullopt;
  std::vector<int64_t> extents;
  for (const auto &extent : shape) {
    if (!extent.is_number_unsigned() ||
        extent.get<uint64_t>() > uint64_t{INT64_MAX})
      return std::nullopt;
    extents.push_back(extent.get<int64_t>());
  }
  return extents;
}

void addSafetensors(const ArrayFileName &name, std::span<const Field> fields,
                    std::vector<ArrayField> &arrays) {
  SafetensorsFile opened(name.path, kFailure);
  const std::map<std::string, SafetensorsEntry> &tensors = opened.tensors();
  for (const auto &[tensor, entry] : tensors)
    if (!entry.range)
      opened.file().fail("the bytes of " + inQuotes(tensor) +
                         " are not inside the file: it is truncated or "
                         "damaged");
  if (opened.hasGaps())
    opened.file().fail(
        "it is no safetensors file: its tensors overlap or leave gaps");
  const std::string needed = opened.metadata(kNeededField);
  if (!needed.empty() &&
      std::ranges::find(fields, needed, &Field::name) == fields.end())
    opened.file().fail(
        "its samples are only for models with the field " + inQuotes(needed) +
        ", which keeps the documents in a sample apart, got a model with " +
        namesOf(fields) +
        ": export it with that input, or write samples of "
        "one document each");
  EqualSamples equal(opened.file());
  std::vector<std::pair<size_t, std::pair<uint64_t, uint64_t>>> found;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field &field = fields[i];
    const auto tensor = tensors.find(field.name);
    if (tensor == tensors.end())
      continue;
    const SafetensorsEntry &entry = tensor->second;
    const auto shape = shapeOf(entry.shape);
    if (!shape)
      opened.file().fail("expected a list of numbers as the shape of " +
                         inQuotes(field.name) + ", got " +
                         program::printable(entry.shape));
    const uint64_t samples =
        samplesOf(opened.file(), field,
                  "\"" + std::string(safetensorsName(field.type)) + "\"",
                  entry.type, *shape);
    // The range is inside the file, so compare without multiplying.
    const auto rowBytes = static_cast<uint64_t>(field.bytes());
    if (!entry.range ||
        (entry.range->second - entry.range->first) / rowBytes != samples ||
        (entry.range->second - entry.range->first) % rowBytes != 0)
      opened.file().fail("expected data_offsets of " + std::to_string(samples) +
                         " times " + std::to_string(rowBytes) +
                         " bytes inside the file "
                         "for " +
                         inQuotes(field.name) + ", got " +
                         program::printable(entry.offsets));
    equal.add(field, samples);
    found.push_back({i, {entry.range->first, samples}});
  }
  std::vector<std::string> names;
  for (const auto &[tensor, entry] : tensors)
    names.push_back(tensor);
  if (found.empty())
    opened.file().fail("expected a tensor for one of the model's fields " +
                       namesOf(fields) + ", got " + namesOfArrays(names));
  // All fields whose tensors are in the file share it.
  const auto file = std::make_shared<InputFile>(std::move(opened).takeFile());
  for (const auto &[i, range] : found)
    arrays[i].add(file, range.first, range.second);
}

} // namespace

std::optional<ArrayFileName>
chimera::runtime::parseArrayFile(const std::string &text) {
  if (text.ends_with(".safetensors") || text.ends_with(".npz"))
    return ArrayFileName{"", text};
  if (!text.ends_with(".npy"))
    return std::nullopt;
  // A '=' in the name of a folder belongs to the path.
  const size_t equals = text.find('=');
  if (equals == std::string::npos || text.find('/') < equals)
    return ArrayFileName{"", text};
  return ArrayFileName{text.substr(0, equals), text.substr(equals + 1)};
}

void ArrayField::add(std::shared_ptr<const InputFile> file, uint64_t begin,
                     uint64_t samples) {
  shards.push_back({std::move(file), begin, total, samples});
  total += samples;
}

const ArrayField::Shard &ArrayField::shardOf(uint64_t sample) const {
  return *std::prev(
      std::ranges::upper_bound(shards, sample, {}, &Shard::first));
}

std::string ArrayField::describePosition(uint64_t sample) const {
  const Shard &shard = shardOf(sample);
  return "row " + std::to_string(sample - shard.first) + " of " +
         inQuotes(shard.file->path());
}

void ArrayField::read(uint64_t sample, Bytes rows) const {
  const auto bytes = static_cast<size_t>(field.bytes());
  for (Bytes rest = rows; !rest.empty();) {
    const Shard &shard = shardOf(sample);
    const uint64_t row = sample - shard.first;
    const uint64_t count = std::min(shard.count - row, rest.size() / bytes);
    shard.file->read(shard.begin + row * bytes, rest.first(count * bytes));
    rest = rest.subspan(count * bytes);
    sample += count;
  }
  if (field.type == TensorType::Boolean)
    for (std::byte &value : rows)
      value = std::byte{value != std::byte{0}};
}

uint64_t ArrayField::digest() const {
  constexpr uint64_t kSamples = 64;
  uint64_t state = mix({shards.size(), total});
  std::vector<std::byte> row(static_cast<size_t>(field.bytes()));
  for (const Shard &shard : shards) {
    state = mix({state, shard.count});
    const uint64_t samples = std::min(kSamples, shard.count);
    for (uint64_t i = 0; i < samples; ++i) {
      // Evenly spaced, without the product i * count, which may overflow.
      read(shard.first + shard.count / samples * i, row);
      state = mix({state, program::checksum(row)});
    }
  }
  return state;
}

std::vector<ArrayField>
chimera::runtime::openArrays(const std::vector<ArrayFileName> &files,
                             std::span<const Field> fields) {
  std::vector<ArrayField> arrays;
  for (const Field &field : fields) {
    if (field.bytes() <= 0)
      throw std::runtime_error("expected a model whose fields have elements, "
                               "got one with an empty " +
                               inQuotes(field.name));
    arrays.emplace_back(field);
  }
  for (const ArrayFileName &name : files)
    (name.path.ends_with(".npy")   ? addNpy
     : name.path.ends_with(".npz") ? addNpz
                                   : addSafetensors)(name, fields, arrays);
  std::string counts;
  bool areEqual = true;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const uint64_t samples = arrays[i].samples();
    if (const InputFile *empty = arrays[i].firstFile(); empty && samples == 0)
      empty->fail("expected samples of the model's field " +
                  inQuotes(fields[i].name) + ", got an array of 0");
    if (samples == 0)
      throw std::runtime_error(
          "expected samples of the model's field " + inQuotes(fields[i].name) +
          " (" + program::nameOf(fields[i].type) + ", shape " +
          shapeText(fields[i].shape) + " a sample), got none: give " +
          program::printable(fields[i].name) +
          "=FILE.npy, or a .npz or safetensors file with an array of that "
          "name");
    areEqual &= samples == arrays.front().samples();
    counts += (i == 0                   ? ""
               : i + 1 == arrays.size() ? " and "
                                        : ", ") +
              std::to_string(samples) + " of " + inQuotes(fields[i].name);
  }
  if (!areEqual)
    throw std::runtime_error(
        "expected as many samples in each of the model's fields, got " +
        counts);
  return arrays;
}
