//===- ShowInput.cpp - The input of chimera-show --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ShowInput.h"

#include "compiler/Source.h"
#include "compiler/describe/OrderFile.h"
#include "compiler/describe/OrderWords.h"
#include "compiler/describe/ProgramText.h"
#include "compiler/schedule/formats/TorchReport.h"
#include "runtime/program/File.h"
#include "runtime/program/Printable.h"
#include "runtime/proof/ProvenFile.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

#include <span>

using namespace mlir;
using namespace chimera;

static void sayWhy(const llvm::Twine &error) {
  llvm::errs() << "chimera-show: " << error << "\n";
}

/// A buffer with the module `text`, which describes the file `name`. The buffer
/// must not have the same name as the file.
static std::unique_ptr<llvm::MemoryBuffer> describing(const std::string &name,
                                                      const std::string &text) {
  return llvm::MemoryBuffer::getMemBufferCopy(text,
                                              name + " (its description)");
}

/// Reads a schedule file of PyTorch. Checks and prints it if it is a lowered
/// program. Returns false, after an error message, if the file cannot be read.
static bool readTorchFile(const std::string &name,
                          std::unique_ptr<llvm::MemoryBuffer> file,
                          const ShowSettings &settings, ShowInput &input) {
  namespace torch = schedule::torch;
  const std::string_view text = std::string_view(file->getBuffer());
  torch::File read;
  if (std::optional<torch::ReadError> error = torch::read(text, read)) {
    llvm::errs() << program::printable(name + ":" +
                                       std::to_string(error->line) + ":" +
                                       std::to_string(error->column) +
                                       ": error: " + error->message)
                 << "\n";
    return false;
  }
  if (!read.isLowered()) {
    std::string error;
    std::optional<TorchOrders> orders = torchOrders(name, text, read, error);
    if (!orders) {
      llvm::errs() << error << "\n";
      return false;
    }
    input.torch = std::move(*orders);
    if (const std::string &why = input.torch.whyNoBlanks; !why.empty())
      input.note = "(the blank cells of the file are left out: " + why + ")\n";
    input.module =
        describing(name, *describeOrderFile(name, input.torch.text, error));
    input.lines = std::move(file);
    return true;
  }
  if (settings.isAboutSchedule()) {
    sayWhy(name +
           ": expected a schedule for the options, got a lowered program "
           "of PyTorch, which is only checked: leave them out, or give "
           "its compute_only file");
    return false;
  }
  const torch::Checked checked = torch::check(read);
  llvm::outs() << torch::describe(read, checked);
  llvm::outs().flush();
  llvm::errs() << torch::describeFaults(program::printable(name), read,
                                        checked);
  input.status = torch::canRun(checked) ? 0 : 1;
  return true;
}

std::optional<ShowInput> chimera::readShowInput(const ShowSettings &settings) {
  std::string error;
  std::string name = settings.input == "-" ? "<stdin>" : settings.input;
  auto refuse = [](const llvm::Twine &text) {
    sayWhy(text);
    return std::nullopt;
  };
  constexpr char kNeedsOrders[] =
      "--zero-bubble-notation needs a file with the order of each worker "
      "(P0: F0 B0 W0)";
  ShowInput input;
  if (!settings.expressions.empty()) {
    if (settings.hasZeroBubbleNotation)
      return refuse(kNeedsOrders);
    std::optional<ExpressionModule> described =
        describeExpressions(settings.expressions, error,
                            settings.printsComparison ? &input.note : nullptr);
    if (!described)
      return refuse("-e: " + error);
    input.expressions = std::move(*described);
    input.module =
        llvm::MemoryBuffer::getMemBufferCopy(input.expressions.text, "-e");
    return input;
  }
  auto file = openInputFile(settings.input, &error);
  if (!file)
    return refuse(error);
  StringRef text = file->getBuffer();
  if (settings.hasZeroBubbleNotation && !isOrderFile(std::string_view(text)))
    return refuse(kNeedsOrders + (", got " + name));
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  if (program::isProgram(bytes)) {
    auto program = program::readProgram(bytes, error);
    if (!program)
      return refuse(name + ": " + error);
    input.module = describing(name, describeProgram(*program));
    input.schedule = program->schedule;
    input.note = "(a program has no link times: messages and all-reduces take "
                 "no time, unless options give times)\n";
    return input;
  }
  if (schedule::torch::isTorchCsv(std::string_view(text))) {
    if (!readTorchFile(name, std::move(file), settings, input))
      return std::nullopt;
    return input;
  }
  if (isOrderFile(std::string_view(text))) {
    const std::string orders =
        settings.hasZeroBubbleNotation
            ? fromZeroBubbleNotation(std::string_view(text))
            : text.str();
    std::optional<std::string> described =
        describeOrderFile(name, orders, error, std::string_view(text));
    if (!described) {
      llvm::errs() << error << "\n";
      return std::nullopt;
    }
    input.module = describing(name, *described);
    input.lines = std::move(file);
    return input;
  }
  if (reportBadDescription(name, text))
    return std::nullopt;
  const bool isBytecode = text.starts_with("ML\xefR");
  if (!isBytecode && !text.contains("chimera."))
    return refuse(name + ": expected a module with a chimera.pipeline, a "
                         "program or the orders of workers (P0: F0 B0)");
  input.module = std::move(file);
  return input;
}
