//===- TestFolder.h - A folder for one test ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_MODEL_CHECKPOINT_TESTFOLDER_H
#define CHIMERA_TEST_RUNTIME_MODEL_CHECKPOINT_TESTFOLDER_H

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>
#include <unistd.h>

namespace chimera::runtime::test {

class TestFolder : public testing::Test {
protected:
  TestFolder()
      : folder(std::filesystem::path(testing::TempDir()) /
               ("chimera-checkpoint-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  ~TestFolder() override { std::filesystem::remove_all(folder); }

  void write(const std::string &name, const std::string &text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  std::string read(const std::string &name) const {
    std::ifstream file(folder / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> names(const std::string &of = ".") const {
    std::set<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder / of))
      found.insert(entry.path().filename());
    return found;
  }
  /// The text of the exception that `action` throws, or an empty string.
  template <typename Action> static std::string errorOf(Action action) {
    try {
      action();
    } catch (const std::exception &error) {
      return error.what();
    }
    return {};
  }

  std::filesystem::path folder;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_MODEL_CHECKPOINT_TESTFOLDER_H
