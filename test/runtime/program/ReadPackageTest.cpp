//===- ReadPackageTest.cpp - Packages that are read from files ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Fields.h"
#include "runtime/program/Package.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>

namespace chimera::program {
namespace {

class ReadPackageTest : public testing::Test {
protected:
  ReadPackageTest() {
    folder = std::filesystem::temp_directory_path() /
             ("chimera-package-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
  }
  ~ReadPackageTest() override { std::filesystem::remove_all(folder); }

  std::string errorOf(const std::string &text) {
    std::ofstream(folder / kPackageFile, std::ios::binary) << text;
    std::string error;
    EXPECT_EQ(readPackage(folder.string(), std::nullopt, error), nullptr);
    return error;
  }
  void expectError(const std::string &text, const std::string &part) {
    const std::string error = errorOf(text);
    EXPECT_EQ(error.find((folder / kPackageFile).string() + ": "), 0u) << error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }

  std::filesystem::path folder;
};

TEST_F(ReadPackageTest, namesTheFolderIfItGetsAFile) {
  std::ofstream(folder / "file") << "{}";
  const auto errorOfFile = [&](const char *name) {
    std::string error;
    EXPECT_EQ(readPackage((folder / name).string(), std::nullopt, error),
              nullptr);
    return error;
  };
  const std::string expected = ": expected the folder of a package, got a file";
  EXPECT_EQ(errorOfFile("file"), (folder / "file").string() + expected);
  std::ofstream(folder / kPackageFile) << "{}";
  for (const char *name : {"file", kPackageFile})
    EXPECT_EQ(errorOfFile(name), (folder / name).string() + expected +
                                     ": name its folder, " + folder.string());
}

TEST_F(ReadPackageTest, refusesWhatIsNoPackage) {
  std::string error;
  EXPECT_EQ(readPackage((folder / "none").string(), std::nullopt, error),
            nullptr);
  EXPECT_NE(error.find("cannot open: No such file"), std::string::npos);
  expectError("", "expected a package's description");
  expectError("{", "expected a package's description");
  expectError("{\"unknown\": 1}", "unknown field");
  expectError("{}", "required field is missing");
  expectError(R"({"packages": [{"version": "one"}]})",
              "expected a package's description");
  expectError(R"({"packages": [{"version": 1}]})", "required field is missing");
  expectError(R"({"packages": []})", "expected at least one package, got none");
  expectError(std::string("{}\0{}", 5), "a byte that is zero");
  expectError(std::string(100000, '['), "expected a package's description");
  expectError(
      R"({"packages": [{"version": 7, "producer": "", "inputs": [],
          "labels": [], "kinds": [], "layers": []}]})",
      "the package for float32: expected version 3 of the format, got 7");
}

TEST_F(ReadPackageTest, refusesTwoPackagesOfOneType) {
  const auto here = std::filesystem::path(__FILE__).parent_path();
  std::ifstream file(here / "../model/graph/Inputs/gpt2.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find('[') + 1;
  const std::string packages = text.substr(begin, text.rfind(']') - begin);
  expectError("{\"packages\": [" + packages + "," + packages + "]}",
              "expected one package for each type, got two for ");
}

TEST_F(ReadPackageTest, findsThePackageOfAType) {
  const auto here = std::filesystem::path(__FILE__).parent_path();
  std::filesystem::copy_file(here / "../model/graph/Inputs/gpt2.json",
                             folder / kPackageFile);
  std::string error;
  const auto typeOf = [&](std::optional<DataType> type) {
    const auto package = readPackage(folder.string(), type, error);
    return package ? std::optional(package->type) : std::nullopt;
  };
  EXPECT_EQ(typeOf(std::nullopt), DataType::Float32);
  EXPECT_EQ(typeOf(DataType::Float32), DataType::Float32);
  EXPECT_EQ(typeOf(DataType::BFloat16), DataType::BFloat16);
  EXPECT_EQ(typeOf(DataType::Float64), std::nullopt);
  EXPECT_EQ(error, (folder / kPackageFile).string() +
                       ": expected a model that was exported for float64, got "
                       "one for float32, bfloat16: export it with --compute "
                       "float64");
}

} // namespace
} // namespace chimera::program
