//===- WeightNamesTest.cpp - Names of parameters in files of weights ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/WeightNames.h"
#include "runtime/model/weights/WeightFiles.h"
#include "test/runtime/model/SmallModel.h"
#include "test/runtime/program/SamplePackages.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace chimera::runtime {
namespace {

using namespace test;
namespace fs = std::filesystem;

// The names in files of some parameters of a model with two blocks. The other
// parameters keep their names.
constexpr char kNames[] = R"({
  "layers.0.token_embedding": "wte",
  "layers.{n}.mlp.weight":
    {"name": "h.{n-1}.{n}.{n+10}.fc", "transposed": true},
  "layers.{n}.mlp.bias": {"name": "h.{n-1}.fc.bias", "transposed": false},
  "layers.{n}.norm.weight": "ln_f",
  "ignored": ["h.{n}.mask", "step"]
})";

class WeightNamesTest : public testing::Test {
protected:
  WeightNamesTest()
      : program(smallProgram({})),
        weights(static_cast<size_t>(
            program::parameterCount(*program.model, 0, 4))) {
    std::iota(weights.begin(), weights.end(), 0.5);
    folder = fs::temp_directory_path() /
             ("chimera-names-" + std::to_string(getpid()));
    fs::create_directory(folder);
    path = (folder / "names.json").string();
    file = (folder / "w.safetensors").string();
  }
  ~WeightNamesTest() override { fs::remove_all(folder); }

  WeightNames namesOf(const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
    return {program, path};
  }
  // The error for the file of names `text`, or "(accepted)".
  std::string refusal(const std::string &text) {
    try {
      namesOf(text);
      return "(accepted)";
    } catch (const std::runtime_error &error) {
      EXPECT_TRUE(std::string(error.what())
                      .starts_with("cannot use the names in '" + path))
          << error.what();
      return error.what();
    }
  }
  void expectRefusal(const std::string &text, const std::string &reason) {
    const std::string got = refusal(text);
    EXPECT_NE(got.find(reason), std::string::npos) << got;
  }
  void save(const WeightNames &names) {
    std::string error;
    ASSERT_TRUE(saveWeights(program, bytesOf(weights), file, error, names))
        << error;
    EXPECT_EQ(fs::file_size(file), weightsFileBytes(program, names));
  }
  std::vector<double> loaded(const WeightNames &names) {
    const LoadedWeights saved(program, file, names);
    std::vector<double> values;
    const program::PackageT &model = *program.model;
    for (const auto &[layer, number, parameter] :
         program::stageParameters(model, 0, program::layerCount(model))) {
      std::vector<double> part(static_cast<size_t>(parameter.elements()));
      saved.read(program::parameterName(model, layer, number),
                 program.weight_type, parameter.shape, bytesOf(part));
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  struct Safetensors {
    nlohmann::json header;
    std::string data;
  };
  Safetensors read() {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    return {nlohmann::json::parse(bytes.substr(8, length)),
            bytes.substr(8 + length)};
  }
  void write(const Safetensors &all) {
    const std::string header = all.header.dump();
    const uint64_t length = header.size();
    std::ofstream(file, std::ios::binary)
        << std::string(reinterpret_cast<const char *>(&length), 8) << header
        << all.data;
  }

  program::ProgramT program;
  std::vector<double> weights;
  fs::path folder;
  std::string path, file;
};

TEST_F(WeightNamesTest, withoutAFileParametersHaveTheirOwn) {
  const WeightNames names;
  EXPECT_EQ(names.tensorOf("layers.1.mlp.weight").name, "layers.1.mlp.weight");
  EXPECT_FALSE(names.tensorOf("layers.1.mlp.weight").isTransposed);
  EXPECT_FALSE(names.isIgnored("h.0.mask"));
  EXPECT_EQ(names.digest(), 0u);
}

TEST_F(WeightNamesTest, givesTensorsNames) {
  const WeightNames names = namesOf(kNames);
  EXPECT_EQ(names.tensorOf("layers.0.token_embedding").name, "wte");
  for (int n : {1, 2}) {
    const auto weight =
        names.tensorOf("layers." + std::to_string(n) + ".mlp.weight");
    EXPECT_EQ(weight.name, "h." + std::to_string(n - 1) + "." +
                               std::to_string(n) + "." +
                               std::to_string(n + 10) + ".fc");
    EXPECT_TRUE(weight.isTransposed);
  }
  EXPECT_EQ(names.tensorOf("layers.2.mlp.bias").name, "h.1.fc.bias");
  EXPECT_FALSE(names.tensorOf("layers.2.mlp.bias").isTransposed);
  EXPECT_EQ(names.tensorOf("layers.3.norm.weight").name, "ln_f");
  EXPECT_EQ(names.tensorOf("layers.3.norm.bias").name, "layers.3.norm.bias");
  EXPECT_TRUE(names.isIgnored("h.12.mask"));
  EXPECT_TRUE(names.isIgnored("step"));
  for (const char *other :
       {"h..mask", "h.x.mask", "h.1.2.mask", "h.01.mask", "h.-1.mask",
        "h.1234567890.mask", "h.mask", "steps"})
    EXPECT_FALSE(names.isIgnored(other)) << other;
}

TEST_F(WeightNamesTest, digestsTellFilesApart) {
  const uint64_t digest = namesOf(kNames).digest();
  EXPECT_NE(digest, 0u);
  EXPECT_EQ(digest, namesOf(kNames).digest());
  EXPECT_NE(digest, namesOf(R"({"layers.0.token_embedding": "wte"})").digest());
}

TEST_F(WeightNamesTest, roundTrip) {
  const WeightNames names = namesOf(kNames);
  save(names);
  EXPECT_EQ(loaded(names), weights);
}

TEST_F(WeightNamesTest, roundTripOfAnExportedModel) {
  program.model = program::samplePackage();
  const std::string first = program::parameterName(*program.model, 0, 0);
  weights.resize(
      static_cast<size_t>(program::parameterCount(*program.model, 0, 3)));
  const WeightNames names = namesOf(
      nlohmann::json{{first, {{"name", "wte"}, {"transposed", true}}}}.dump());
  save(names);
  EXPECT_EQ(read().header["wte"]["shape"], nlohmann::json({3, 5}));
  EXPECT_EQ(loaded(names), weights);
}

TEST_F(WeightNamesTest, writesMatricesTransposed) {
  save(WeightNames());
  const Safetensors plain = read();
  save(namesOf(kNames));
  const Safetensors named = read();
  EXPECT_FALSE(named.header.contains("layers.1.mlp.weight"));
  EXPECT_EQ(named.header["h.0.1.11.fc"]["shape"], nlohmann::json({8, 32}));
  EXPECT_EQ(named.header["wte"], plain.header["layers.0.token_embedding"]);
  auto element = [](const Safetensors &of, const char *tensor, size_t at) {
    double value;
    std::memcpy(
        &value,
        &of.data[of.header[tensor]["data_offsets"][0].get<size_t>() + 8 * at],
        8);
    return value;
  };
  for (size_t row = 0; row < 32; ++row)
    for (size_t column = 0; column < 8; ++column)
      EXPECT_EQ(element(named, "h.0.1.11.fc", column * 32 + row),
                element(plain, "layers.1.mlp.weight", row * 8 + column));
}

TEST_F(WeightNamesTest, refusesAFileOfOtherNames) {
  save(WeightNames());
  try {
    LoadedWeights(program, file, namesOf(kNames));
    FAIL();
  } catch (const std::runtime_error &error) {
    const std::string reason = error.what();
    for (const char *part :
         {"\n  h.0.1.11.fc: missing, for layers.1.mlp.weight",
          "\n  layers.1.mlp.weight: not a parameter of the program's model"})
      EXPECT_NE(reason.find(part), std::string::npos) << reason;
    EXPECT_EQ(reason.find("norm1"), std::string::npos) << reason;
  }
}

TEST_F(WeightNamesTest, refusesTheShapeOfAMatrixThatIsNotTransposed) {
  save(namesOf(R"({"layers.1.mlp.weight": "fc"})"));
  try {
    LoadedWeights(program, file, namesOf(R"({"layers.1.mlp.weight":
      {"name": "fc", "transposed": true}})"));
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_NE(
        std::string(error.what()).find("fc: expected shape [8,32], got [32,8]"),
        std::string::npos)
        << error.what();
  }
}

TEST_F(WeightNamesTest, readsPastIgnoredTensors) {
  const WeightNames names = namesOf(kNames);
  save(names);
  Safetensors all = read();
  all.header["h.7.mask"] = {
      {"dtype", "U8"},
      {"shape", {3}},
      {"data_offsets", {all.data.size(), all.data.size() + 3}}};
  all.data += "abc";
  write(all);
  EXPECT_EQ(loaded(names), weights);
  auto expectDifference = [&](const char *reason) {
    write(all);
    try {
      LoadedWeights(program, file, names);
      ADD_FAILURE();
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos)
          << error.what();
    }
  };
  // The byte ranges of ignored tensors are also checked.
  all.header["h.7.mask"]["data_offsets"][1] = all.data.size() + 1;
  expectDifference("h.7.mask: expected data_offsets of bytes inside the file");
  all.header["h.7.mask"]["data_offsets"] = {0, 3};
  expectDifference("its tensors overlap or leave gaps");
  all.header["h.7.mask"] = 7;
  expectDifference("h.7.mask: not a parameter");
}

TEST_F(WeightNamesTest, refusesWhatIsNoFileOfNames) {
  expectRefusal("", "parse error");
  expectRefusal("{\"layers.0.token_embedding\": \"\xff\"}", "parse error");
  expectRefusal("[]", "expected a JSON object");
  expectRefusal("\"name\"", "expected a JSON object");
  expectRefusal("{}" + std::string((1 << 20) - 1, ' '),
                "expected at most 1 MiB");
  EXPECT_EQ(refusal("{}" + std::string((1 << 20) - 2, ' ')), "(accepted)");
  expectRefusal(std::string(100'000, '['), "it nests more than two levels");
  fs::remove(path);
  EXPECT_THROW(WeightNames(program, path), std::runtime_error);
  EXPECT_THROW(WeightNames(program, folder.string()), std::runtime_error);
}

TEST_F(WeightNamesTest, refusesAProgramWithoutAModel) {
  program.model.reset();
  expectRefusal("{}", "expected a program with a model");
}

TEST_F(WeightNamesTest, refusesEntriesThatAreNone) {
  for (const char *entry :
       {"7", "null", "[]", "{}", R"({"name": 7})", R"({"transposed": true})",
        R"({"name": "a", "transposed": 1})", R"({"name": "a", "shape": 2})"})
    expectRefusal(std::string(R"({"layers.0.token_embedding": )") + entry + "}",
                  "\n  layers.0.token_embedding: expected a name or {");
  for (const char *list : {"7", "\"h.mask\"", "[7]", "{}"})
    expectRefusal(std::string(R"({"ignored": )") + list + "}",
                  "\n  ignored: expected a list of names, got ");
}

TEST_F(WeightNamesTest, refusesKeysThatAreThereTwice) {
  expectRefusal(R"({"layers.0.token_embedding": "a",
                    "layers.0.token_embedding": "b"})",
                "\n  layers.0.token_embedding: this key occurs twice");
}

TEST_F(WeightNamesTest, refusesEntriesOfNoParameter) {
  const std::string reason = refusal(R"({"layers.{n}.gate": "a{n}",
                                         "layers.{n}.{n}": "b"})");
  for (const char *entry : {"layers.{n}.gate", "layers.{n}.{n}"})
    EXPECT_NE(reason.find(std::string("\n  ") + entry +
                          ": the program's model has no parameter"),
              std::string::npos)
        << reason;
}

TEST_F(WeightNamesTest, refusesNamesWithOtherPlaces) {
  for (const char *place : {"{m}", "{}", "{n", "{n+}", "{n-x}", "{n+01}",
                            "{n+1234567890}", "{n*2}", "{"})
    expectRefusal(
        nlohmann::json{{"layers.{n}.mlp.bias", std::string("b.{n}.") + place}}
            .dump(),
        std::string("\n  layers.{n}.mlp.bias: expected {n}, {n+1} or "
                    "{n-1}, got ") +
            place);
  expectRefusal(R"({"layers.1.mlp.bias": "b.{n}"})",
                "\n  layers.1.mlp.bias: {n} cannot be replaced");
  expectRefusal(R"({"layers.{n}.mlp.bias": "b.{n-2}"})",
                "\n  layers.{n}.mlp.bias: {n-2} is less than 0 if {n} is 1");
  expectRefusal(R"({"layers.1.mlp.bias": "__metadata__"})",
                "\n  layers.1.mlp.bias: a tensor cannot have that name");
}

TEST_F(WeightNamesTest, refusesAParameterWithTwoEntries) {
  expectRefusal(R"({"layers.{n}.mlp.bias": "b.{n}", "layers.1.mlp.bias": "c"})",
                "\n  layers.{n}.mlp.bias: layers.1.mlp.bias has another entry");
}

TEST_F(WeightNamesTest, refusesATensorOfTwoParameters) {
  expectRefusal(R"({"layers.{n}.mlp.bias": "b"})",
                "\n  b: it is the tensor of layers.1.mlp.bias and of "
                "layers.2.mlp.bias");
  expectRefusal(R"({"layers.1.mlp.bias": "layers.2.mlp.bias"})",
                "\n  layers.2.mlp.bias: it is the tensor of layers.1.mlp.bias "
                "and of layers.2.mlp.bias");
  // Two parameters may exchange their names.
  EXPECT_EQ(refusal(R"({"layers.1.mlp.bias": "layers.2.mlp.bias",
                        "layers.2.mlp.bias": "layers.1.mlp.bias"})"),
            "(accepted)");
}

TEST_F(WeightNamesTest, refusesToTransposeWhatIsNoMatrix) {
  expectRefusal(
      R"({"layers.{n}.mlp.bias": {"name": "b.{n}", "transposed": true}})",
      "\n  layers.{n}.mlp.bias: layers.1.mlp.bias is not a matrix");
}

TEST_F(WeightNamesTest, refusesToIgnoreAParametersTensor) {
  expectRefusal(R"({"layers.{n}.mlp.bias": "b.{n}", "ignored": ["b.{n}"]})",
                "\n  b.1: it is in \"ignored\", but it is the tensor of "
                "layers.1.mlp.bias");
}

} // namespace
} // namespace chimera::runtime
