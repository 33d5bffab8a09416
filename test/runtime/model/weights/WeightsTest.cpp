//===- WeightsTest.cpp - A model's weights in files -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/model/weights/WeightsFixture.h"

#include <algorithm>
#include <bit>
#include <c10/util/BFloat16.h>
#include <cmath>
#include <limits>

namespace chimera::runtime {
namespace {

using namespace test;
namespace fs = std::filesystem;

TEST_F(WeightsTest, roundTrip) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  EXPECT_EQ(load(), "(loaded)");
  EXPECT_EQ(fs::file_size(path), weightsFileBytes(program));
  // Saving leaves no other file in the folder.
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
  setGpt2(program, {.tied = true});
  weights.resize(weights.size() - 11 * 8);
  // The file has the weights of a model without tied parameters.
  EXPECT_NE(load().find("layers.3.head.weight: expected the same values as in "
                        "layers.0.token_embedding"),
            std::string::npos);
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  EXPECT_EQ(load(), "(loaded)");
  EXPECT_EQ(read().find("head.weight"), std::string::npos);
  // Now the file has the weights of a tied model, but the model is not tied.
  setGpt2(program, {});
  weights.resize(weights.size() + 11 * 8);
  EXPECT_NE(load().find("layers.3.head.weight: missing"), std::string::npos);
}

TEST_F(WeightsTest, digestsTellValuesApart) {
  auto digest = [&] {
    EXPECT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
    return LoadedWeights(program, path).digest();
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
  // Two tensors of the same shape exchange their positions in the data.
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
    header["layers.3.norm.weight"]["dtype"] = "I64";
    header["layers.2.norm1.weight"]["dtype"] = "I64";
    header["layers.1.norm1.weight"]["dtype"] = "F8";
  });
  std::string reason = load();
  EXPECT_NE(reason.find("layers.3.norm.bias: expected shape [8], got [4,2]"),
            std::string::npos);
  // The error has one line for each wrong type.
  for (const char *expected :
       {"layers.2.norm1.weight: expected dtype \"F64\", \"F32\", \"BF16\" or "
        "\"F16\", got \"I64\", and so in 1 other tensor\n",
        "layers.1.norm1.weight: expected dtype \"F64\", \"F32\", \"BF16\" or "
        "\"F16\", got \"F8\"\n"})
    EXPECT_NE((reason + "\n").find(expected), std::string::npos) << reason;
}

TEST_F(WeightsTest, refusesNumbersThatAreNotFinite) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(),
                     -std::numeric_limits<double>::infinity()}) {
    std::vector<double> changed = weights;
    changed.back() = bad;
    ASSERT_TRUE(saveWeights(program, bytesOf(changed), path, error)) << error;
    EXPECT_NE(load().find("expected finite numbers in '"), std::string::npos);
  }
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
  EXPECT_NE(load().find("its tensors overlap or leave gaps"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesBytesOfNoTensor) {
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  write(read() + "x");
  EXPECT_NE(load().find("its tensors overlap or leave gaps"),
            std::string::npos);
}

TEST_F(WeightsTest, refusesAHeaderThatNests) {
  constexpr size_t kLevels = 1'000'000;
  writeWith(R"({"layers.3.norm.bias":{"shape":)" + std::string(kLevels, '[') +
            std::string(kLevels, ']') + "}}");
  EXPECT_NE(load().find("its header nests more than three levels"),
            std::string::npos);
  // Brackets in strings do not count as nesting.
  saveWith([](auto &header) {
    header["__metadata__"] = {{"made by", R"(\"[[[[{{{{)"}};
  });
  EXPECT_EQ(load(), "(loaded)");
}

// Files without metadata, whose data start at any byte. PyTorch's writer for
// Hugging Face makes such files when it consolidates shards.
TEST_F(WeightsTest, readsFilesWithoutMetadataOrAlignment) {
  for (size_t spaces = 0; spaces < 8; ++spaces) {
    saveWith([](nlohmann::json &header) { header.erase("__metadata__"); });
    std::string file = read();
    uint64_t length;
    std::memcpy(&length, file.data(), 8);
    writeWith(file.substr(8, length) + std::string(spaces, ' '));
    EXPECT_EQ(load(), "(loaded)") << spaces;
  }
}

// Files with narrower types than the model. Each value of a file is listed with
// the number that it stands for.
TEST_F(WeightsTest, convertsNarrowerTypes) {
  const uint16_t kBFloat16[] = {0x0000, 0x8000, 0x3FC0, 0xC2F7, 0x0001, 0x7F7F};
  const double kOfBFloat16[] = {
      0.,
      -0.,
      1.5,
      -123.5,
      std::ldexp(1., -133),
      static_cast<double>(std::bit_cast<float>(0x7F7F0000u))};
  const uint16_t kFloat16[] = {0x0000, 0x8000, 0x3E00, 0xD7B8, 0x0001, 0x7BFF};
  const double kOfFloat16[] = {0.,    -0., 1.5, -123.5, std::ldexp(1., -24),
                               65504.};
  for (const auto type :
       {program::DataType::Float32, program::DataType::Float64})
    for (const bool isBFloat16 : {true, false}) {
      program.weight_type = program.activation_type =
          program::DataType::Float64;
      ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
      std::string file = read();
      uint64_t length;
      std::memcpy(&length, file.data(), 8);
      auto header = nlohmann::json::parse(file.substr(8, length));
      header.erase("__metadata__");
      for (auto &[name, entry] : header.items()) {
        entry["dtype"] = isBFloat16 ? "BF16" : "F16";
        for (auto &offset : entry["data_offsets"])
          offset = offset.get<uint64_t>() / 4;
      }
      const std::string text = header.dump();
      length = text.size();
      file = std::string(reinterpret_cast<const char *>(&length), 8) + text;
      std::vector<double> expected;
      for (size_t i = 0; i < weights.size(); ++i) {
        const uint16_t value = (isBFloat16 ? kBFloat16 : kFloat16)[i % 6];
        file.append(reinterpret_cast<const char *>(&value), 2);
        expected.push_back((isBFloat16 ? kOfBFloat16 : kOfFloat16)[i % 6]);
      }
      write(file);
      program.weight_type = program.activation_type = type;
      if (type == program::DataType::Float64) {
        EXPECT_EQ(loaded<double>(), expected);
      } else {
        EXPECT_EQ(loaded<float>(),
                  std::vector<float>(expected.begin(), expected.end()));
      }
      EXPECT_EQ(LoadedWeights(program, path).conversion(),
                std::to_string(header.size()) + " tensors of " +
                    (isBFloat16 ? "BF16" : "F16") + ", converted to " +
                    (type == program::DataType::Float64 ? "F64" : "F32") +
                    " exactly");
    }
}

TEST_F(WeightsTest, convertsFloat32ToFloat64AndNotBack) {
  program.weight_type = program.activation_type = program::DataType::Float32;
  std::vector<float> narrow(weights.begin(), weights.end());
  ASSERT_TRUE(saveWeights(program, bytesOf(narrow), path, error)) << error;
  EXPECT_EQ(LoadedWeights(program, path).conversion(), "");
  program.weight_type = program.activation_type = program::DataType::Float64;
  EXPECT_EQ(load(), "(loaded)");
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  program.weight_type = program.activation_type = program::DataType::Float32;
  const std::string reason = load();
  EXPECT_NE(reason.find("expected dtype \"F32\", \"BF16\" or \"F16\", got "
                        "\"F64\", and so in "),
            std::string::npos)
      << reason;
  EXPECT_EQ(std::ranges::count(reason, '\n'), 1) << reason;
}

// Parameters in bfloat16 are read from files in it, and rounded from float32.
TEST_F(WeightsTest, roundsFloat32ToBFloat16) {
  program.weight_type = program.activation_type = program::DataType::Float32;
  std::vector<float> wide(weights.begin(), weights.end());
  ASSERT_TRUE(saveWeights(program, bytesOf(wide), path, error)) << error;
  program.weight_type = program.activation_type = program::DataType::BFloat16;
  std::vector<c10::BFloat16> rounded(wide.begin(), wide.end());
  EXPECT_EQ(loaded<c10::BFloat16>(), rounded);
  const std::string note = LoadedWeights(program, path).conversion();
  EXPECT_NE(note.find(" tensors of F32, rounded to BF16"), std::string::npos)
      << note;
  ASSERT_TRUE(saveWeights(program, bytesOf(rounded), path, error)) << error;
  EXPECT_EQ(loaded<c10::BFloat16>(), rounded);
  EXPECT_EQ(LoadedWeights(program, path).conversion(), "");
  program.weight_type = program.activation_type = program::DataType::Float32;
  EXPECT_EQ(loaded<float>(),
            std::vector<float>(rounded.begin(), rounded.end()));
}

// Many checkpoints of Qwen2 contain the tied matrix twice, under both names.
TEST_F(WeightsTest, readsATiedMatrixUnderBothNames) {
  setGpt2(program, {.tied = true});
  weights.resize(weights.size() - 11 * 8);
  const size_t tiedBytes = 11 * 8 * sizeof(double);
  auto saveBoth = [&](size_t changed) {
    ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
    const std::string file = read();
    uint64_t length;
    std::memcpy(&length, file.data(), 8);
    auto header = nlohmann::json::parse(file.substr(8, length));
    auto other = header["layers.0.token_embedding"];
    const auto begin = other["data_offsets"][0].get<uint64_t>();
    other["data_offsets"] = {weights.size() * 8,
                             weights.size() * 8 + tiedBytes};
    header["layers.3.head.weight"] = other;
    const std::string text = header.dump();
    std::string again = file.substr(8 + length + begin, tiedBytes);
    if (changed < again.size())
      again[changed] ^= 1;
    const uint64_t newLength = text.size();
    write(std::string(reinterpret_cast<const char *>(&newLength), 8) + text +
          file.substr(8 + length) + again);
  };
  saveBoth(tiedBytes);
  EXPECT_EQ(load(), "(loaded)");
  for (size_t changed : {size_t{0}, tiedBytes - 1}) {
    saveBoth(changed);
    EXPECT_NE(load().find("layers.3.head.weight: expected the same values as "
                          "in layers.0.token_embedding, because the program's "
                          "model ties the two"),
              std::string::npos);
  }
}

} // namespace
} // namespace chimera::runtime
