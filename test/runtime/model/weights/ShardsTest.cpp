//===- ShardsTest.cpp - A model's weights in several files ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/model/weights/WeightsFixture.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace chimera::runtime {
namespace {

using namespace test;
namespace fs = std::filesystem;

// Weights in three files (shards), and an index that lists the file of each
// tensor.
class ShardsTest : public WeightsTest {
protected:
  // Layer n is in shard n % 3.
  void saveShards() {
    path = folder / "whole";
    ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
    const std::string file = read();
    uint64_t length;
    std::memcpy(&length, file.data(), 8);
    auto header = nlohmann::json::parse(file.substr(8, length));
    header.erase("__metadata__");
    nlohmann::json headers[3];
    std::string data[3];
    for (auto &[name, entry] : header.items()) {
      const auto shard = static_cast<size_t>(name[7] - '0') % 3;
      const auto begin = entry["data_offsets"][0].get<uint64_t>();
      const auto end = entry["data_offsets"][1].get<uint64_t>();
      const uint64_t at = data[shard].size();
      data[shard] += file.substr(8 + length + begin, end - begin);
      headers[shard][name] = entry;
      headers[shard][name]["data_offsets"] = {at, at + end - begin};
      index["weight_map"][name] = nameOf(shard);
    }
    for (size_t shard = 0; shard < 3; ++shard) {
      const std::string text = headers[shard].dump();
      length = text.size();
      std::ofstream(folder / nameOf(shard), std::ios::binary)
          << std::string(reinterpret_cast<const char *>(&length), 8) << text
          << data[shard];
    }
    fs::remove(path);
    writeIndex();
  }
  void writeIndex() {
    std::ofstream(folder / "model.safetensors.index.json") << index.dump();
  }
  static std::string nameOf(size_t shard) {
    return "model-0000" + std::to_string(shard + 1) + "-of-00003.safetensors";
  }

  nlohmann::json index = {{"metadata", {{"total_size", 1}}}};
};

TEST_F(ShardsTest, areReadByTheirIndexOrFolder) {
  saveShards();
  path = folder;
  EXPECT_EQ(load(), "(loaded)");
  path = folder / "model.safetensors.index.json";
  EXPECT_EQ(load(), "(loaded)");
  const uint64_t digest = LoadedWeights(program, path).digest();
  weights.back() += 1;
  saveShards();
  path = folder / "model.safetensors.index.json";
  EXPECT_NE(LoadedWeights(program, path).digest(), digest);
}

TEST_F(ShardsTest, areIgnoredIfThereIsAWholeFile) {
  saveShards();
  path = folder / "model.safetensors";
  weights[0] += 1;
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  path = folder;
  EXPECT_EQ(load(), "(loaded)");
}

TEST_F(ShardsTest, refusesFoldersWithoutWeights) {
  path = folder;
  EXPECT_NE(load().find("expected a folder with model.safetensors, "
                        "model.safetensors.index.json or values.safetensors, "
                        "and it has none of them"),
            std::string::npos);
}

TEST_F(ShardsTest, areReadFromAPackage) {
  path = folder / "values.safetensors";
  ASSERT_TRUE(saveWeights(program, bytesOf(weights), path, error)) << error;
  std::ofstream(folder / "model.json") << R"([[[[{"kinds": []}]]]])";
  path = folder;
  EXPECT_EQ(load(), "(loaded)");
  path = folder / "model.json";
  for (const char *text : {R"([[[[{"kinds": []}]]]])", R"({"kinds": []})"}) {
    std::ofstream(folder / "model.json") << text;
    EXPECT_NE(load().find("model.json': it has the layers of a package. Its "
                          "weights are in values.safetensors of the same "
                          "folder"),
              std::string::npos)
        << load();
  }
}

TEST_F(ShardsTest, namesTheOtherFormOfAFolder) {
  path = folder;
  for (auto [file, form] :
       {std::pair(".metadata", "but a distributed checkpoint of PyTorch."),
        {"adapter_model.safetensors", "but the weights of an adapter"},
        {"pytorch_model.bin", "but weights in a pickle of Python."},
        {"pytorch_model.bin.index.json", "but weights in a pickle"},
        {"model.json", "but a package that was exported without values."}}) {
    std::ofstream(folder / file) << "PK\3\4";
    EXPECT_NE(load().find(form), std::string::npos) << load();
    fs::remove(folder / file);
  }
  path = folder / "pytorch_model.bin";
  std::ofstream(path) << "PK\3\4 and more";
  EXPECT_NE(load().find("expected a safetensors file, got a pickle of Python"),
            std::string::npos)
      << load();
}

TEST_F(ShardsTest, refusesAnIndexWithMissingShards) {
  saveShards();
  path = folder;
  fs::remove(folder / nameOf(1));
  EXPECT_NE(load().find(nameOf(1) + "': No such file or directory"),
            std::string::npos);
  saveShards();
  path = folder;
  index["weight_map"]["layers.3.norm.bias"] = nameOf(1);
  writeIndex();
  EXPECT_NE(load().find("it says that 'layers.3.norm.bias' is in '" +
                        nameOf(1) + "', which has no such tensor"),
            std::string::npos);
  for (const char *name : {"", "../x", "/etc/passwd", "."}) {
    index["weight_map"]["layers.3.norm.bias"] = name;
    writeIndex();
    EXPECT_NE(load(), "(loaded)") << name;
  }
  index["weight_map"]["layers.3.norm.bias"] = 7;
  writeIndex();
  EXPECT_NE(load().find("expected the name of a file in the same folder for "
                        "'layers.3.norm.bias', got 7"),
            std::string::npos);
}

TEST_F(ShardsTest, refusesTensorsThatAreThereTwice) {
  saveShards();
  fs::copy_file(folder / nameOf(1), folder / "again.safetensors");
  index["weight_map"]["layers.1.norm1.bias"] = "again.safetensors";
  writeIndex();
  path = folder;
  EXPECT_NE(load().find("it has the tensor 'layers.1."), std::string::npos);
}

TEST_F(ShardsTest, refusesIndicesThatAreNone) {
  for (const char *text : {"", "[]", "{}", R"({"weight_map": []})",
                           R"({"weight_map": {}})", "{\"weight_map\": {\"a"}) {
    std::ofstream(folder / "model.safetensors.index.json") << text;
    path = folder;
    EXPECT_NE(load().find("it is no index of safetensors files"),
              std::string::npos)
        << text;
  }
}

} // namespace
} // namespace chimera::runtime
