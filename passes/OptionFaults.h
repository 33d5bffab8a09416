//===- OptionFaults.h - Options of passes that are wrong --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR says "no such option" and not of which pass, nor which options there
// are.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_OPTIONFAULTS_H
#define CHIMERA_PASSES_OPTIONFAULTS_H

#include "mlir/Pass/Pass.h"

#include <string>

namespace chimera {

/// A message that names the fault of the options `given` to a pass or pipeline.
/// `known` are the options that it has, as MLIR prints them ("{costs=uniform
/// forward=0}"), and `message` is MLIR's own message. If that is empty, the
/// option has printed its fault by itself.
std::string optionFault(llvm::StringRef name, llvm::StringRef known,
                        llvm::StringRef given, llvm::StringRef message);

/// A pass on one `Op` whose faulty options give a message for people.
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
          return fail(optionFault(
              this->getArgument(),
              llvm::StringRef(text).drop_front(this->getArgument().size()),
              options, message.str()));
        });
  }
};

} // namespace chimera

#endif // CHIMERA_PASSES_OPTIONFAULTS_H
