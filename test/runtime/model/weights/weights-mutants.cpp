//===- weights-mutants.cpp - Randomly changed files of weights ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes safetensors files, and indexes of several such files, at random.
// Reads all tensors of the accepted files. Their byte ranges must fill the data
// of the files. The values must equal the bytes in the files, or be converted
// from them. See Mutants.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/WeightFiles.h"
#include "test/runtime/model/Mutants.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <cstring>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {

/// A program, and the header and the data of a file of its weights.
struct Sample {
  program::ProgramT program;
  std::string header, data;
};

Sample sampleOf(program::ProgramT program, const Folder &folder) {
  const program::PackageT &model = *program.model;
  const auto bytes = static_cast<size_t>(program::parameterBytes(
      program::typesOf(program),
      program::parameterCount(model, 0, program::layerCount(model))));
  // All weights are different, so that values at a wrong position are noticed.
  std::vector<uint32_t> weights(bytes / 4);
  std::iota(weights.begin(), weights.end(), 0x40000000);
  const std::string path = folder.write("sample", "", 0);
  std::string error;
  if (!saveWeights(program, bytesOf(weights), path, error))
    fault(error);
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  uint64_t length;
  std::memcpy(&length, file.data(), sizeof length);
  return {std::move(program), file.substr(sizeof length, length),
          file.substr(sizeof length + length)};
}

/// Converts the file of a float32 program to bfloat16: keeps the upper half of
/// each number.
void narrow(Sample &sample) {
  Json header = Json::parse(sample.header);
  for (auto &[name, entry] : header.items())
    if (name != "__metadata__") {
      entry["dtype"] = "BF16";
      for (auto &offset : entry["data_offsets"])
        offset = offset.get<uint64_t>() / 2;
    }
  sample.header = header.dump();
  std::string data;
  for (size_t at = 0; at < sample.data.size(); at += 4)
    data += sample.data.substr(at + 2, 2);
  sample.data = data;
}

std::vector<Sample> samples(const Folder &folder) {
  std::vector<Sample> all;
  all.push_back(sampleOf(smallProgram({}), folder));
  all.push_back(sampleOf(
      smallProgram(
          {.layers = 1, .type = program::DataType::Float32, .tied = true}),
      folder));
  all.push_back(sampleOf(
      smallProgram({.layers = 1, .type = program::DataType::Float32}), folder));
  narrow(all.back());
  program::ProgramT exported = smallProgram({});
  exported.model = program::samplePackage();
  all.push_back(sampleOf(std::move(exported), folder));
  return all;
}

/// Texts that may replace a number in a header.
const char *const kNumbers[] = {"-1",
                                "-0",
                                "0",
                                "8",
                                "8.0",
                                "1e3",
                                "1e400",
                                "4294967296",
                                "9223372036854775807",
                                "9223372036854775808",
                                "18446744073709551552",
                                "18446744073709551615",
                                "18446744073709551616",
                                "null",
                                "true",
                                "[]",
                                "{}",
                                "\"8\"",
                                "\"\\ud800\"",
                                "NaN",
                                ""};
const char *const kTypes[] = {"F64", "F32", "BF16", "I64", "", "f64"};
const char *const kBadText[] = {"\xff", "\xc0\x80", "\xed\xa0\x80", "\\ud800",
                                "\\u0000"};

/// Changes a value of the header, which stays valid JSON.
void changeValues(std::string &header, Random &random) {
  Json root = Json::parse(header, nullptr, false);
  if (!root.is_object() || root.empty())
    return;
  auto entry = [&]() -> Json & {
    return *std::next(root.begin(),
                      static_cast<ptrdiff_t>(below(random, root.size())));
  };
  Json &one = entry(), &other = entry();
  switch (below(random, 6)) {
  case 0:
    std::swap(one["data_offsets"], other["data_offsets"]);
    break;
  case 1:
    one["data_offsets"] = other["data_offsets"];
    break;
  case 2:
    one["dtype"] = oneOf(kTypes, random);
    break;
  case 3:
    // Append two dimensions. The product of the shape stays the same, becomes
    // 0, or exceeds 64 bits.
    one["shape"].push_back(below(random, 2) ? uint64_t{1} << below(random, 64)
                                            : 0);
    one["shape"].push_back(uint64_t{1} << below(random, 64));
    break;
  default:
    change(pick(root, random), root, random);
  }
  header = root.dump(below(random, 4) ? -1 : 1);
}

/// Changes the text of the header in ways that `changeValues` cannot express.
/// The result need not be JSON.
void changeText(std::string &header, Random &random) {
  // The position of a random number in the header.
  const size_t number =
      header.find_first_of("0123456789", below(random, header.size() + 1));
  const size_t end = header.find_first_not_of("0123456789", number);
  const size_t name = header.find('"', below(random, header.size() + 1));
  switch (below(random, 6)) {
  case 0:
    if (number != std::string::npos)
      header.replace(number, end - number, oneOf(kNumbers, random));
    break;
  case 1:
    if (number != std::string::npos) {
      const size_t depth = size_t{1} << below(random, 10);
      // Nest deeply only rarely, because reading it takes long.
      const size_t levels = below(random, 100) ? depth : depth * 512;
      std::string nested(levels, '[');
      if (below(random, 2))
        nested.append(levels, ']');
      header.replace(number, end - number, nested);
    }
    break;
  case 2: {
    // Copy a random part of the header to before its first entry, up to the end
    // of an entry.
    const size_t comma = header.find("},", below(random, header.size() + 1));
    const size_t begin = header.find('"', 1);
    if (comma != std::string::npos && begin < comma)
      header.insert(1, header.substr(begin, comma + 2 - begin));
    break;
  }
  case 3:
    if (name != std::string::npos)
      header.insert(name + 1, oneOf(kBadText, random));
    break;
  case 4:
    header.insert(
        below(random, 2) ? 0 : header.size(),
        std::string(below(random, 64), " \n\t\0x{"[below(random, 6)]));
    break;
  default:
    change(header, random);
  }
}

struct Opened {
  const program::ProgramT *program;
  std::unique_ptr<LoadedWeights> weights;
  std::string path, file;
  uint64_t size;
  std::vector<std::string> shards = {}; ///< instead of `file`
};

/// The bytes of a file with this header and data.
std::string fileOf(const std::string &header, const std::string &data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         header + data;
}

/// Opens the sample divided into three shards. Either the index or the header
/// of one shard is changed.
Opened openShards(const Sample &sample, const Folder &folder, Random &random) {
  constexpr size_t kShards = 3;
  const Json all = Json::parse(sample.header);
  Json headers[kShards], map = Json::object();
  std::string data[kShards];
  auto nameOf = [](size_t shard) {
    return "shard" + std::to_string(shard) + ".safetensors";
  };
  for (const auto &[name, entry] : all.items()) {
    if (name == "__metadata__")
      continue;
    const size_t shard = below(random, kShards);
    const auto begin = entry["data_offsets"][0].get<uint64_t>();
    const auto end = entry["data_offsets"][1].get<uint64_t>();
    headers[shard][name] = entry;
    headers[shard][name]["data_offsets"] = {data[shard].size(),
                                            data[shard].size() + end - begin};
    data[shard] += sample.data.substr(begin, end - begin);
    map[name] = nameOf(shard);
  }
  Json index = {{"metadata", {{"total_size", sample.data.size()}}},
                {"weight_map", map}};
  if (below(random, 2)) {
    // Give a tensor a wrong shard, or a shard that does not exist.
    auto entry = std::next(
        index["weight_map"].begin(),
        static_cast<ptrdiff_t>(below(random, index["weight_map"].size())));
    const std::string other = below(random, 2) ? nameOf(below(random, kShards))
                                               : oneOf(kBadText, random);
    if (below(random, 2))
      *entry = other;
    else
      change(pick(index, random), index, random);
  }
  std::string text = index.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (uint64_t i = below(random, 2); i > 0; --i)
    changeText(text, random);
  Opened opened{.program = &sample.program,
                .weights = {},
                .path = {},
                .file = {},
                .size = 0};
  for (size_t shard = 0; shard < kShards; ++shard) {
    std::string header =
        headers[shard].is_null() ? "{}" : headers[shard].dump();
    if (below(random, 12) == 0)
      changeValues(header, random);
    if (below(random, 12) == 0)
      changeText(header, random);
    opened.shards.push_back(fileOf(header, data[shard]));
    folder.write(nameOf(shard), opened.shards.back(),
                 opened.shards.back().size());
  }
  opened.path = folder.write("weights.index.json", text, text.size());
  opened.weights = std::make_unique<LoadedWeights>(sample.program, opened.path);
  return opened;
}

Opened openMutant(const Sample &sample, const Folder &folder, Random &random) {
  if (below(random, 3) == 0)
    return openShards(sample, folder, random);
  std::string header = sample.header, data = sample.data;
  // Change values before texts: changed texts may be deeply nested, and parsing
  // them as Json would exhaust the stack.
  for (uint64_t i = below(random, 3); i > 0; --i)
    changeValues(header, random);
  for (uint64_t i = below(random, 3); i > 0; --i)
    changeText(header, random);
  uint64_t length = header.size();
  std::string file;
  auto put = [&] {
    file.assign(reinterpret_cast<const char *>(&length), sizeof length);
    file += header + data;
  };
  put();
  uint64_t size = file.size();
  switch (below(random, 10)) {
  case 0:
    length = below(random, 2)
                 ? length + below(random, 17) - 8
                 : (uint64_t{1} << below(random, 64)) - below(random, 9);
    put();
    break;
  case 1:
    change(data, random);
    put();
    size = file.size();
    break;
  case 2:
    change(file, random);
    size = file.size();
    break;
  case 3:
    size = below(random, 2) ? below(random, size)
                            : size + (uint64_t{1} << below(random, 41));
    break;
  case 4:
    // Rarely, make the header about as long as the reader allows.
    if (below(random, 200) == 0) {
      length = 100'000'000 - below(random, 3) + 1;
      put();
      size += length;
    }
    break;
  default:
    break;
  }
  file.resize(std::min<uint64_t>(size, file.size()));
  const std::string path = folder.write("weights", file, size);
  return {&sample.program,
          std::make_unique<LoadedWeights>(sample.program, path), path, file,
          size};
}

/// The bytes that a tensor must have in memory, from its bytes in the file. Its
/// type in the file must be the type of the program's weights. If this is
/// float32, the type in the file may also be bfloat16.
std::string inMemory(const Json &entry, const std::string &bytes) {
  if (entry.at("dtype") != "BF16")
    return bytes;
  std::string wide;
  for (size_t at = 0; at < bytes.size(); at += 2)
    wide += std::string(2, '\0') + bytes.substr(at, 2);
  return wide;
}

/// Reads all tensors, and compares them with the bytes of the shards.
void useShards(const Opened &opened) {
  const program::PackageT &model = *opened.program->model;
  opened.weights->digest();
  for (const auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model))) {
    const std::string name = program::parameterName(model, layer, number);
    Guarded<uint8_t> memory(static_cast<size_t>(
        parameter.elements() * program::bytesOf(opened.program->weight_type)));
    opened.weights->read(name, opened.program->weight_type, parameter.shape,
                         std::as_writable_bytes(memory.span()));
    memory.check();
    size_t found = 0;
    for (const std::string &file : opened.shards) {
      uint64_t length;
      std::memcpy(&length, file.data(), sizeof length);
      const Json header = Json::parse(file.substr(sizeof length, length));
      if (!header.contains(name))
        continue;
      ++found;
      const auto offsets =
          header.at(name).at("data_offsets").get<std::vector<uint64_t>>();
      const std::string expected = inMemory(
          header.at(name), file.substr(sizeof length + length + offsets.at(0),
                                       offsets.at(1) - offsets.at(0)));
      if (expected.size() != memory.span().size() ||
          std::memcmp(memory.span().data(), expected.data(), expected.size()) !=
              0)
        fault("expected the shard's bytes in " + name);
    }
    if (found != 1)
      fault("expected " + name + " in one shard");
  }
}

/// Reads all tensors, and compares them with the bytes of the file.
void use(const Opened &opened, const Folder &folder, Random &random) {
  if (!opened.shards.empty())
    return useShards(opened);
  const program::PackageT &model = *opened.program->model;
  const std::string &file = opened.file;
  // Sometimes change the length of the file, which is already open.
  const uint64_t size =
      below(random, 16) ? opened.size : below(random, opened.size + 100);
  if (size != opened.size)
    folder.resize("weights", size);
  uint64_t length;
  std::memcpy(&length, file.data(), sizeof length);
  const uint64_t begin = sizeof length + length;
  const Json header = Json::parse(file.substr(sizeof length, length));
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  opened.weights->digest();
  for (const auto &[layer, number, parameter] :
       program::stageParameters(model, 0, program::layerCount(model))) {
    const std::string name = program::parameterName(model, layer, number);
    const auto bytes = static_cast<size_t>(
        parameter.elements() * program::bytesOf(opened.program->weight_type));
    auto readInto = [&](const std::string &from, Guarded<uint8_t> &memory) {
      opened.weights->read(from, opened.program->weight_type, parameter.shape,
                           std::as_writable_bytes(memory.span()));
    };
    Guarded<uint8_t> memory(bytes);
    try {
      readInto(name, memory);
    } catch (...) {
      memory.check();
      throw;
    }
    memory.check();
    const auto offsets =
        header.at(name).at("data_offsets").get<std::vector<uint64_t>>();
    const Json &type = header.at(name).at("dtype");
    const bool isNarrow = type == "BF16" || type == "F16" ||
                          (type == "F32" && opened.program->weight_type ==
                                                program::DataType::Float64);
    if (offsets.size() != 2 || offsets[0] > offsets[1] ||
        (offsets[1] - offsets[0] != bytes) != isNarrow)
      fault("expected a range of the tensor's size");
    ranges.emplace_back(offsets[0], offsets[1]);
    const bool isComparable =
        !isNarrow || (type == "BF16" && opened.program->weight_type ==
                                            program::DataType::Float32);
    if (isComparable &&
        begin + offsets[1] <= std::min<uint64_t>(size, file.size())) {
      const std::string there =
          inMemory(header.at(name),
                   file.substr(begin + offsets[0], offsets[1] - offsets[0]));
      if (there.size() != bytes ||
          std::memcmp(memory.span().data(), there.data(), bytes) != 0)
        fault("expected the file's bytes in " + name);
    }
    for (const auto &[other, more] :
         {std::pair{name, size_t{1}}, {name + "x", size_t{0}}})
      try {
        Guarded<uint8_t> wrong(bytes + more);
        readInto(other, wrong);
        fault("expected no tensor of this name and size");
      } catch (const std::runtime_error &) {
      }
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto &[first, last] : ranges) {
    if (first != end)
      fault("expected tensors without gaps that share nothing");
    end = last;
  }
  if (begin + end != opened.size)
    fault("expected tensors that fill the file");
}

} // namespace

int main(int argc, char **argv) {
  const Folder folder;
  const std::vector<Sample> all = samples(folder);
  return mutantsMain(
      argc, argv, "Changes files of weights and reads what is accepted.",
      [&](uint64_t, Random &random) {
        return openMutant(oneOf(all, random), folder, random);
      },
      [&](const Opened &opened, Random &random) {
        use(opened, folder, random);
      });
}
