//===- WeightsFixture.h - A small model with weights in a file --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_MODEL_WEIGHTS_WEIGHTSFIXTURE_H
#define CHIMERA_TEST_RUNTIME_MODEL_WEIGHTS_WEIGHTSFIXTURE_H

#include "runtime/model/weights/WeightFiles.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

namespace chimera::runtime::test {

class WeightsTest : public testing::Test {
protected:
  WeightsTest()
      : program(smallProgram({})),
        weights(static_cast<size_t>(
            program::parameterCount(*program.model, 0, 4))) {
    std::iota(weights.begin(), weights.end(), 0.5);
    folder = std::filesystem::temp_directory_path() /
             ("chimera-weights-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    path = (folder / "w.safetensors").string();
  }
  ~WeightsTest() override { std::filesystem::remove_all(folder); }

  std::string read() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // Reads all tensors of the file, in the model's order.
  template <typename T> std::vector<T> loaded() {
    const LoadedWeights saved(program, path);
    std::vector<T> values;
    const program::PackageT &model = *program.model;
    for (const auto &[layer, number, parameter] :
         program::stageParameters(model, 0, program::layerCount(model))) {
      std::vector<T> part(static_cast<size_t>(parameter.elements()));
      saved.read(program::parameterName(model, layer, number),
                 program.weight_type, parameter.shape, bytesOf(part));
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  // The error of loading the file, or "(loaded)".
  std::string load() {
    try {
      EXPECT_EQ(loaded<double>(), weights);
      return "(loaded)";
    } catch (const std::runtime_error &error) {
      return error.what();
    }
  }
  // Writes a file with this header and the weights.
  void writeWith(const std::string &header) {
    const uint64_t length = header.size();
    write(std::string(reinterpret_cast<const char *>(&length), 8) + header +
          std::string(reinterpret_cast<const char *>(weights.data()),
                      weights.size() * 8));
  }
  // Saves the weights to the file, and then changes the header of the file.
  void saveWith(const std::function<void(nlohmann::json &)> &change) {
    ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
    std::string file = read();
    uint64_t length;
    std::memcpy(&length, file.data(), 8);
    auto header = nlohmann::json::parse(file.substr(8, length));
    change(header);
    writeWith(header.dump());
  }

  program::ProgramT program;
  std::vector<double> weights;
  std::filesystem::path folder;
  std::string path, error;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_MODEL_WEIGHTS_WEIGHTSFIXTURE_H
