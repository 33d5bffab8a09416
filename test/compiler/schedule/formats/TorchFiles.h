//===- TorchFiles.h - Schedule files that torch wrote -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_FORMATS_TORCHFILES_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_FORMATS_TORCHFILES_H

#include "compiler/schedule/formats/TorchCsv.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace chimera::schedule::torch {

/// The text of a file that torch 2.15 wrote for 4 ranks and 8 micro-batches,
/// such as "DualPipeV.compute_only".
inline std::string textOfTorch(const std::string &name) {
  std::ifstream file(CHIMERA_TORCH_FILES "/" + name + ".csv");
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline File readText(std::string_view text) {
  File file;
  if (std::optional<ReadError> error = read(text, file))
    ADD_FAILURE() << error->line << ":" << error->column << ": "
                  << error->message;
  return file;
}

} // namespace chimera::schedule::torch

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_FORMATS_TORCHFILES_H
