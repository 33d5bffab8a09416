//===- TextDataFixture.h - A small model and a text in a file ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_DATA_TEXTDATAFIXTURE_H
#define CHIMERA_TEST_RUNTIME_DATA_TEXTDATAFIXTURE_H

#include "runtime/data/TextData.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace chimera::runtime::test {

class TextDataTest : public testing::Test {
protected:
  TextDataTest() {
    program = smallProgram({.context = 8, .vocabulary = 256}, {4});
    program.micro_batches = 4; // so a mini-batch has 8 samples
  }
  ~TextDataTest() override { std::filesystem::remove(path); }

  void write(const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // Byte i of the text is i modulo 256.
  void writeRamp(size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i)
      text.push_back(static_cast<char>(i));
    write(text);
  }
  std::string refusal(double holdOut = 0.1,
                      uint64_t mostBytes = kMaxTextBytes) {
    try {
      TextData(path, program, holdOut, mostBytes, LastBatch::Fill);
    } catch (const std::exception &error) {
      return error.what();
    }
    return "(accepted)";
  }
  std::vector<int64_t> load(TextData &data, program::ValueKind kind,
                            MicroBatch microBatch, size_t rows = 2) {
    std::vector<int64_t> values(8 * rows);
    data.load(kind, microBatch, bytesOf(values));
    return values;
  }

  program::ProgramT program;
  std::string path = (std::filesystem::temp_directory_path() /
                      ("chimera-text-" + std::to_string(getpid())))
                         .string();
};

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_DATA_TEXTDATAFIXTURE_H
