//===- OptionErrors.h - Errors about wrong options of passes ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Better error messages for wrong options. MLIR's own message is "no such
// option". This message names neither the pass nor the options that exist.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_OPTIONERRORS_H
#define CHIMERA_PASSES_OPTIONERRORS_H

#include "mlir/Pass/Pass.h"

#include <string>

namespace chimera {

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

#endif // CHIMERA_PASSES_OPTIONERRORS_H
