//===- ArraysFixture.h - A model of arrays, and files for it ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_DATA_ARRAYSFIXTURE_H
#define CHIMERA_TEST_RUNTIME_DATA_ARRAYSFIXTURE_H

#include "runtime/data/ArrayData.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"
#include "test/runtime/program/SamplePackages.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace chimera::runtime::test {

/// A program whose model has the inputs `pixels` (float32 [2, 3]) and `known`
/// (boolean []), and the label `classes` (int64 []). A step has 4 micro-batches
/// of 2 samples.
inline program::ProgramT programOfArrays() {
  using program::TensorType;
  program::ProgramT program;
  program.micro_batches = 2;
  program.data_parallel = 2;
  program.micro_batch_size = 2;
  program.seed = 5;
  program.model = program::samplePackage();
  program::PackageT &package = *program.model;
  package.inputs = {"pixels", "known"};
  package.labels = {"classes"};
  program::setFields(
      package.kinds[0]->graphs->inputs,
      {{TensorType::Float32, {2, 3}}, {TensorType::Boolean, {}}});
  program::setFields(package.kinds[2]->graphs->labels,
                     {{TensorType::Int64, {}}});
  return program;
}

/// The bytes of a .npy file with this header and these elements.
inline std::string npyOf(std::string header, const std::string &elements,
                         char version = 1) {
  const size_t lengthBytes = version == 1 ? 2 : 4;
  while ((8 + lengthBytes + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  const auto length = static_cast<uint32_t>(header.size());
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes.append(reinterpret_cast<const char *>(&length), lengthBytes);
  return bytes + header + elements;
}

inline std::string npyHeader(const std::string &descr, const std::string &shape,
                             const char *isColumnMajor = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + isColumnMajor +
         ", 'shape': " + shape + ", }";
}

/// The bytes of a safetensors file.
inline std::string safetensorsOf(const nlohmann::json &header,
                                 const std::string &data) {
  const std::string text = header.dump();
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         text + data;
}

/// The bytes of a zip archive as numpy.savez writes it. With `isZip64`, all
/// sizes and offsets are in zip64 fields.
inline std::string
zipOf(const std::vector<std::pair<std::string, std::string>> &members,
      bool isZip64 = false, uint16_t method = 0, uint16_t flags = 0) {
  std::string bytes, directory;
  const auto add = [](std::string &to, auto number) {
    to.append(reinterpret_cast<const char *>(&number), sizeof(number));
  };
  const auto addZeros = [](std::string &to, size_t count) {
    to.append(count, '\0');
  };
  for (const auto &[name, content] : members) {
    const uint64_t at = bytes.size(), size = content.size();
    const auto narrow = [&](uint64_t number) {
      return isZip64 ? UINT32_MAX : static_cast<uint32_t>(number);
    };
    std::string extra;
    if (isZip64) {
      add(extra, uint16_t{7}); // another field, which is skipped
      add(extra, uint16_t{2});
      addZeros(extra, 2);
      add(extra, uint16_t{1});
      add(extra, uint16_t{24});
      for (uint64_t number : {size, size, at})
        add(extra, number);
    }
    for (bool isEntry : {false, true}) {
      std::string &to = isEntry ? directory : bytes;
      add(to, isEntry ? uint32_t{0x02014b50} : uint32_t{0x04034b50});
      if (isEntry)
        add(to, uint16_t{45}); // version
      add(to, uint16_t{45});
      add(to, flags);
      add(to, method);
      addZeros(to, 8); // time, CRC
      add(to, narrow(size));
      add(to, narrow(size));
      add(to, static_cast<uint16_t>(name.size()));
      add(to, static_cast<uint16_t>(isEntry ? extra.size() : 5));
      if (isEntry) {
        addZeros(to, 10); // comment, disk, attributes
        add(to, narrow(at));
      }
      to += name;
      to += isEntry ? extra : "extra";
    }
    bytes += content;
  }
  const uint64_t begin = bytes.size(), size = directory.size(),
                 count = members.size();
  bytes += directory;
  if (isZip64) {
    const uint64_t at = bytes.size();
    add(bytes, uint32_t{0x06064b50});
    add(bytes, uint64_t{44});
    addZeros(bytes, 12); // versions, disks
    for (uint64_t number : {count, count, size, begin})
      add(bytes, number);
    add(bytes, uint32_t{0x07064b50});
    addZeros(bytes, 4);
    add(bytes, at);
    add(bytes, uint32_t{1});
  }
  add(bytes, uint32_t{0x06054b50});
  addZeros(bytes, 4);
  const auto narrowCount = static_cast<uint16_t>(isZip64 ? UINT16_MAX : count);
  add(bytes, narrowCount);
  add(bytes, narrowCount);
  add(bytes, isZip64 ? UINT32_MAX : static_cast<uint32_t>(size));
  add(bytes, isZip64 ? UINT32_MAX : static_cast<uint32_t>(begin));
  add(bytes, uint16_t{0});
  return bytes;
}

template <typename T> std::string bytesOfAll(const std::vector<T> &numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// The values of samples [first, end): 6 pixels with values 10 s + i for sample
/// s, `known` if s is even, and class 100 + s.
inline std::string pixelsOf(int first, int end) {
  std::vector<float> pixels;
  for (int s = first; s < end; ++s)
    for (int i = 0; i < 6; ++i)
      pixels.push_back(static_cast<float>(10 * s + i));
  return bytesOfAll(pixels);
}
inline std::string knownOf(int first, int end) {
  std::string known;
  for (int s = first; s < end; ++s)
    known += s % 2 == 0 ? '\2' : '\0'; // 2 is a boolean that is true
  return known;
}
inline std::string classesOf(int first, int end) {
  std::vector<int64_t> classes;
  for (int s = first; s < end; ++s)
    classes.push_back(100 + s);
  return bytesOfAll(classes);
}

/// The members of a .npz file of samples [first, end).
inline std::vector<std::pair<std::string, std::string>> npzMembersOf(int first,
                                                                     int end) {
  const std::string n = std::to_string(end - first);
  return {{"pixels.npy",
           npyOf(npyHeader("<f4", "(" + n + ", 2, 3)"), pixelsOf(first, end))},
          {"other.npy", npyOf(npyHeader("|u1", "(1,)"), "x")},
          {"known.npy",
           npyOf(npyHeader("|b1", "(" + n + ",)"), knownOf(first, end))},
          {"classes.npy",
           npyOf(npyHeader("<i8", "(" + n + ",)"), classesOf(first, end))}};
}

/// A safetensors file of samples [first, end).
inline nlohmann::json headerOfSamples(int first, int end) {
  const int n = end - first;
  return {
      {"pixels",
       {{"dtype", "F32"}, {"shape", {n, 2, 3}}, {"data_offsets", {0, 24 * n}}}},
      {"classes",
       {{"dtype", "I64"}, {"shape", {n}}, {"data_offsets", {24 * n, 32 * n}}}},
      {"known",
       {{"dtype", "BOOL"},
        {"shape", {n}},
        {"data_offsets", {32 * n, 33 * n}}}}};
}
inline std::string dataOfSamples(int first, int end) {
  return pixelsOf(first, end) + classesOf(first, end) + knownOf(first, end);
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_DATA_ARRAYSFIXTURE_H
