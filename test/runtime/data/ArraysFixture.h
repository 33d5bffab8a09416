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
  program.model = std::make_unique<program::ModelT>();
  program.model->architecture = program::kExported;
  program.model->package = program::samplePackage();
  program::PackageT &package = *program.model->package;
  package.inputs = {"pixels", "known"};
  package.labels = {"classes"};
  const auto set =
      [](auto &tensors,
         std::vector<std::pair<TensorType, std::vector<int64_t>>> shapes) {
        tensors.clear();
        for (auto &[type, shape] : shapes) {
          tensors.push_back(std::make_unique<program::TensorShapeT>());
          tensors.back()->type = type;
          tensors.back()->shape = shape;
        }
      };
  set(program::kindOf(package, 0).graphs[0]->inputs,
      {{TensorType::Float32, {2, 2, 3}}, {TensorType::Boolean, {2}}});
  set(program::kindOf(package, static_cast<uint32_t>(package.layers.size()) - 1)
          .graphs[0]
          ->labels,
      {{TensorType::Int64, {2}}});
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
