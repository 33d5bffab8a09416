//===- WeightsTest.cpp - A model's weights on disk ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Weights.h"
#include "test/runtime/stage/torch/SmallModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

namespace chimera::runtime {
namespace {

using namespace test;
namespace fs = std::filesystem;

class WeightsTest : public testing::Test {
protected:
  WeightsTest()
      : program(smallProgram({})),
        weights(static_cast<size_t>(
            program::parameterCount(*program.model, 0, 4))) {
    std::iota(weights.begin(), weights.end(), 0.5);
    folder = fs::temp_directory_path() /
             ("chimera-weights-" + std::to_string(getpid()));
    fs::create_directory(folder);
    path = (folder / "w.safetensors").string();
  }
  ~WeightsTest() override { fs::remove_all(folder); }

  std::string read() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // All of the file's tensors, as the model orders them.
  template <typename T> std::vector<T> loaded() {
    const SavedWeights saved(program, path);
    std::vector<T> values;
    const program::ModelT &model = *program.model;
    for (const auto &[layer, number, parameter] :
         program::stageParameters(model, 0, program::layerCount(model))) {
      std::vector<T> part(static_cast<size_t>(parameter.elements()));
      saved.read(program::parameterName(model, layer, number),
                 program.weight_type, parameter.shape, bytesOf(part));
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  // The reason if it cannot be loaded.
  std::string load() {
    try {
      EXPECT_EQ(loaded<double>(), weights);
      return "(loaded)";
    } catch (const std::runtime_error &error) {
      return error.what();
    }
  }
  // A file of this header and the weights.
  void writeWith(const std::string &header) {
    const uint64_t length = header.size();
    write(std::string(reinterpret_cast<const char *>(&length), 8) + header +
          std::string(reinterpret_cast<const char *>(weights.data()),
                      weights.size() * 8));
  }
  // Saves, and rewrites the header.
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
  fs::path folder;
  std::string path, error;
};

TEST_F(WeightsTest, roundTrip) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  EXPECT_EQ(load(), "(loaded)");
  EXPECT_EQ(fs::file_size(path), weightsFileBytes(program));
  // Nothing else is left in the folder.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(WeightsTest, roundTripInFloat32) {
  program.weight_type = program.activation_type = program::DataType::Float32;
  std::vector<float> narrow(weights.begin(), weights.end());
  ASSERT_TRUE(saveWeights(program, bytesOf(narrow), path, error)) << error;
  EXPECT_EQ(loaded<float>(), narrow);
}

TEST_F(WeightsTest, aTiedModelsMatrixIsThereOnce) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  program.model->tied = true;
  weights.resize(weights.size() - 11 * 8);
  // That of a model that is not tied.
  EXPECT_NE(load().find("layers.3.head.weight: not a parameter"),
            std::string::npos);
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  EXPECT_EQ(load(), "(loaded)");
  EXPECT_EQ(read().find("head.weight"), std::string::npos);
  // The other way round.
  program.model->tied = false;
  weights.resize(weights.size() + 11 * 8);
  EXPECT_NE(load().find("layers.3.head.weight: missing"), std::string::npos);
}

TEST_F(WeightsTest, digestsTellValuesApart) {
  auto digest = [&] {
    EXPECT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
    return SavedWeights(program, path).digest();
  };
  const uint64_t first = digest();
  EXPECT_EQ(digest(), first);
  for (size_t i : {size_t{0}, weights.size() - 1}) {
    weights[i] += 1;
    EXPECT_NE(digest(), first);
    weights[i] -= 1;
  }
}

TEST_F(WeightsTest, fileIsSafetensors) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  std::string file = read();
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(file.size(), 8 + length + weights.size() * 8);
  auto header = nlohmann::json::parse(file.substr(8, length));
  auto bias = header["layers.2.attention.bias"];
  EXPECT_EQ(bias["dtype"], "F64");
  EXPECT_EQ(bias["shape"], nlohmann::json({24}));
  const auto begin = bias["data_offsets"][0].get<size_t>();
  EXPECT_EQ(bias["data_offsets"][1], begin + 24 * 8);
  double first;
  std::memcpy(&first, &file[8 + length + begin], 8);
  EXPECT_EQ(first, static_cast<double>(begin) / 8 + 0.5);
}

TEST_F(WeightsTest, readsTensorsInAnyOrderAndForeignMetadata) {
  // Two tensors of one shape change places in the data.
  saveWith([](nlohmann::json &header) {
    header["__metadata__"] = {{"made by", "another"}};
    std::swap(header["layers.1.norm1.weight"]["data_offsets"],
              header["layers.1.norm1.bias"]["data_offsets"]);
  });
  std::vector<double> expected = weights;
  std::swap_ranges(expected.begin() + 136, expected.begin() + 144,
                   expected.begin() + 144);
  EXPECT_EQ(loaded<double>(), expected);
}

TEST_F(WeightsTest, keepsTheOldFileWhenItCannotWrite) {
  fs::create_directory(folder / "w.safetensors");
  EXPECT_FALSE(saveWeights(program, bytesOf(weights), path, error));
  EXPECT_EQ(error, path + ": cannot write: Is a directory");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_FALSE(saveWeights(program, bytesOf(weights),
                           (folder / "none" / "w").string(), error));
  EXPECT_NE(error.find("No such file or directory"), std::string::npos);
}

TEST_F(WeightsTest, refusesSizesThatAreNotTheModels) {
  EXPECT_FALSE(saveWeights(program, bytesOf(weights).subspan(8), path, error));
  EXPECT_NE(error.find("expected the whole model's weights"),
            std::string::npos);
  program.model.reset();
  EXPECT_FALSE(saveWeights(program, bytesOf(weights), path, error));
  EXPECT_NE(error.find("expected a program with a model"), std::string::npos);
}

TEST_F(WeightsTest, refusesAMissingFile) {
  EXPECT_NE(load().find("No such file or directory"), std::string::npos);
}

TEST_F(WeightsTest, refusesGarbageAndTruncation) {
  for (std::string bytes :
       {std::string(), std::string("short"), std::string(100, '\xff'),
        std::string(100, '\0'), std::string("\x02\0\0\0\0\0\0\0[]", 10)}) {
    write(bytes);
    EXPECT_NE(load().find("no safetensors file"), std::string::npos);
  }
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_NE(load().find("bytes inside the file"), std::string::npos);
}

TEST_F(WeightsTest, refusesAMissingTensor) {
  saveWith([](auto &header) { header.erase("layers.3.norm.bias"); });
  EXPECT_NE(load().find("layers.3.norm.bias: missing"), std::string::npos);
}

TEST_F(WeightsTest, refusesATensorTooMany) {
  saveWith([](auto &header) {
    header["layers.4.norm.bias"] = header["layers.3.norm.bias"];
  });
  EXPECT_NE(load().find("layers.4.norm.bias: not a parameter"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesAnotherShapeOrType) {
  saveWith([](auto &header) {
    header["layers.3.norm.bias"]["shape"] = {4, 2};
    header["layers.3.norm.weight"]["dtype"] = "F32";
  });
  std::string reason = load();
  EXPECT_NE(reason.find("layers.3.norm.bias: expected shape [8], got [4,2]"),
            std::string::npos);
  EXPECT_NE(
      reason.find("layers.3.norm.weight: expected dtype \"F64\", got \"F32\""),
      std::string::npos);
}

TEST_F(WeightsTest, refusesOffsetsOutsideTheFile) {
  saveWith([&](auto &header) {
    header["layers.3.norm.bias"]["data_offsets"] = {weights.size() * 8,
                                                    weights.size() * 8 + 64};
  });
  EXPECT_NE(load().find("expected data_offsets of 64 bytes inside the file"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesTensorsThatShareBytes) {
  saveWith([](auto &header) {
    header["layers.1.norm1.weight"]["data_offsets"] =
        header["layers.1.norm1.bias"]["data_offsets"];
  });
  EXPECT_NE(load().find("its tensors share bytes or leave some"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesBytesOfNoTensor) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  write(read() + "x");
  EXPECT_NE(load().find("its tensors share bytes or leave some"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesAHeaderThatNests) {
  constexpr size_t kLevels = 1'000'000;
  writeWith(R"({"layers.3.norm.bias":{"shape":)" + std::string(kLevels, '[') +
            std::string(kLevels, ']') + "}}");
  EXPECT_NE(load().find("its header nests more than three levels"),
            std::string::npos);
  // What strings say does not nest.
  saveWith([](auto &header) {
    header["__metadata__"] = {{"made by", R"(\"[[[[{{{{)"}};
  });
  EXPECT_EQ(load(), "(loaded)");
}

} // namespace
} // namespace chimera::runtime
