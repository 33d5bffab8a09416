//===- FallbackFileTest.cpp - Files written to a fallback folder ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/FallbackFile.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace chimera::program;
namespace fs = std::filesystem;

namespace {
/// A test in a folder of its own, with another folder for temporary files.
class FallbackFileTest : public testing::Test {
protected:
  void SetUp() override {
    fs::create_directories(temporary);
    fs::current_path(folder);
    setenv("TMPDIR", temporary.c_str(), 1);
  }
  void TearDown() override {
    fs::current_path(before);
    if (variable.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", variable.c_str(), 1);
    fs::remove_all(folder);
  }

  const fs::path before = fs::current_path();
  const std::string variable =
      std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  const fs::path folder = fs::path(testing::TempDir()) /
                          ("chimera-elsewhere-" + std::to_string(getpid()));
  const fs::path temporary = folder / "temporary";
};

TEST_F(FallbackFileTest, IsTheCurrentFolder) {
  std::string written = writeFallback("/full/disk/w", [](std::string path) {
    return bool(std::ofstream(path) << "text");
  });
  EXPECT_EQ(written, folder / "rescued-w");
  EXPECT_TRUE(fs::exists(written));
}

TEST_F(FallbackFileTest, IsTheFolderForTemporaryFilesWhereThatFails) {
  std::vector<std::string> asked;
  std::string written = writeFallback("w", [&](const std::string &path) {
    asked.push_back(path);
    return asked.size() == 2;
  });
  EXPECT_EQ(asked, (std::vector<std::string>{folder / "rescued-w",
                                             temporary / "rescued-w"}));
  EXPECT_EQ(written, asked[1]);
}

TEST_F(FallbackFileTest, IsNowhereWhereBothFail) {
  int asked = 0;
  EXPECT_EQ(
      writeFallback("w", [&](const std::string &) { return ++asked < 0; }), "");
  EXPECT_EQ(asked, 2);
}

TEST_F(FallbackFileTest, UsesNoExistingName) {
  std::ofstream("rescued-w") << "another";
  fs::create_symlink("none", "rescued-2-w");
  std::vector<std::string> asked;
  std::string written = writeFallback("w", [&](const std::string &path) {
    asked.push_back(path);
    // Another run writes a file of the same name meanwhile.
    std::ofstream(path) << "text";
    return asked.size() == 2;
  });
  EXPECT_EQ(asked, (std::vector<std::string>{folder / "rescued-3-w",
                                             folder / "rescued-4-w"}));
  EXPECT_EQ(written, asked[1]);
}
} // namespace
