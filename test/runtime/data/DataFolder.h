//===- DataFolder.h - Files of tokens for tests -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_DATA_DATAFOLDER_H
#define CHIMERA_TEST_RUNTIME_DATA_DATAFOLDER_H

#include "runtime/data/OpenTokens.h"
#include "runtime/data/Tokens.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <unistd.h>

namespace chimera::runtime::test {

/// Writes files to a temporary folder, and reads them as tokens.
class DataFolder : public testing::Test {
protected:
  DataFolder() {
    folder = std::filesystem::temp_directory_path() /
             ("chimera-tokens-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
  }
  ~DataFolder() override { std::filesystem::remove_all(folder); }

  std::string writeBytes(const std::string &name, const std::string &bytes) {
    const std::string path = (folder / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  template <typename T>
  std::string writeNumbers(const std::string &name,
                           const std::vector<T> &numbers) {
    return writeBytes(name, {reinterpret_cast<const char *>(numbers.data()),
                             numbers.size() * sizeof(T)});
  }

  // Writes the tokens first, first + 1, … to a file. If `magic` is not 0, a
  // header of llm.c comes before the tokens.
  template <typename T>
  std::string write(const std::string &name, uint32_t first, uint32_t count,
                    int32_t magic = 0, int32_t version = 1) {
    const std::string path = (folder / name).string();
    std::ofstream file(path, std::ios::binary);
    std::vector<int32_t> header(256);
    header[0] = magic;
    header[1] = version;
    header[2] = static_cast<int32_t>(count);
    if (magic)
      file.write(reinterpret_cast<char *>(header.data()), 1024);
    std::vector<T> tokens(count);
    std::iota(tokens.begin(), tokens.end(), static_cast<T>(first));
    file.write(reinterpret_cast<char *>(tokens.data()),
               static_cast<std::streamsize>(count * sizeof(T)));
    return path;
  }

  std::vector<int64_t> read(const Tokens &tokens, uint64_t first,
                            size_t count) {
    std::vector<int64_t> values(count);
    tokens.read(first, values);
    return values;
  }
  std::string refusal(const std::vector<std::string> &files, TokenFormat format,
                      uint64_t vocabulary = 256) {
    try {
      openTokens(
          files,
          {.format = format, .vocabulary = vocabulary, .mostBytes = 1000});
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "(accepted)";
  }

  std::filesystem::path folder;
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_DATA_DATAFOLDER_H
