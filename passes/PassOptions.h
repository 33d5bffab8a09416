//===- PassOptions.h - Options of passes ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that options of passes have, and errors about wrong options. MLIR's
// own message is "no such option". It names neither the pass nor the options
// that exist.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_PASSOPTIONS_H
#define CHIMERA_PASSES_PASSOPTIONS_H

#include "dialect/Decimal.h"
#include "runtime/program/Program.h"

#include "mlir/Pass/Pass.h"
#include "llvm/Support/CommandLine.h"

#include <string>

/// Lets a pass declare options of type chimera::Decimal.
template <>
class llvm::cl::parser<chimera::Decimal>
    : public llvm::cl::basic_parser<chimera::Decimal> {
public:
  parser(Option &option) : basic_parser(option) {}

  /// Returns true, as LLVM expects, if `text` is not a number.
  bool parse(Option &option, StringRef, StringRef text,
             chimera::Decimal &value) {
    std::optional<chimera::Decimal> read = chimera::decimalOf(text);
    if (!read)
      return option.error("expected a number such as 2, 0.5 or 1e3, got '" +
                          text + "'");
    value = *read;
    return false;
  }

  StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const Option &option, const chimera::Decimal &, OptVal,
                       size_t width) const {
    printOptionNoValue(option, width);
  }
  void anchor() override {}
};

namespace chimera {

/// The values of an option that names a message model. A message model says
/// what sends and receives wait for. Passes place messages for one model, and
/// programs are proven under one.
llvm::cl::ValuesClass messageModels();

/// The error message for the wrong options `given` of the pass or pipeline
/// `name`. `known` has the options of the pass as MLIR prints them
/// ("{costs=uniform forward=0}"). `message` is MLIR's own message. It is empty
/// if the option has printed an error itself.
std::string optionError(llvm::StringRef name, llvm::StringRef known,
                        llvm::StringRef given, llvm::StringRef message);

/// The base of a pass on `Op` that reports wrong options with optionError.
template <typename Op> class PassOn : public mlir::OperationPass<Op> {
protected:
  using mlir::OperationPass<Op>::OperationPass;

  llvm::LogicalResult
  initializeOptions(llvm::StringRef options,
                    llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)>
                        fail) override {
    std::string text;
    llvm::raw_string_ostream os(text);
    this->printAsTextualPipeline(os);
    return mlir::Pass::initializeOptions(
        options, [&](const llvm::Twine &message) {
          return fail(optionError(
              this->getArgument(),
              llvm::StringRef(text).drop_front(this->getArgument().size()),
              options, message.str()));
        });
  }
};

} // namespace chimera

#endif // CHIMERA_PASSES_PASSOPTIONS_H
