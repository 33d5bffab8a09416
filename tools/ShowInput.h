//===- ShowInput.h - The input of chimera-show ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_SHOWINPUT_H
#define CHIMERA_TOOLS_SHOWINPUT_H

#include "compiler/describe/Expression.h"
#include "compiler/describe/TorchFile.h"
#include "tools/ShowSettings.h"

#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>
#include <string>

namespace chimera {

/// The input that the command line of chimera-show names.
struct ShowInput {
  /// The text of a module. It is the input file itself, or it describes the
  /// input.
  std::unique_ptr<llvm::MemoryBuffer> module;
  /// If the input is a file of orders or of PyTorch, its text, because
  /// diagnostics show its lines. Otherwise null.
  std::unique_ptr<llvm::MemoryBuffer> lines;
  /// If the input is expressions (-e), their description. Otherwise empty.
  ExpressionModule expressions;
  /// A line to print after the schedule, or empty.
  std::string note;
  /// If the input is a program, the name of the program's schedule. Otherwise
  /// empty.
  std::string schedule;
  /// If the input is a file of PyTorch, its orders. Otherwise empty.
  TorchOrders torch;
  /// If the input is a lowered program of PyTorch, the exit status: it has been
  /// checked, and there is nothing more to show.
  std::optional<int> status;
};

/// Reads the input that `settings` name. If it is a lowered program of PyTorch,
/// checks and prints it. Returns nothing, after an error message, if the input
/// cannot be read.
std::optional<ShowInput> readShowInput(const ShowSettings &settings);

} // namespace chimera

#endif // CHIMERA_TOOLS_SHOWINPUT_H
