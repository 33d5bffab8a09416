//===- Reporting.cpp - Common parts of reports and timelines --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/report/Reporting.h"

#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Output.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace chimera {

FailureOr<SmallVector<PipelineOp>> pipelinesOf(ModuleOp module,
                                               StringRef pass) {
  SmallVector<PipelineOp> pipelines(module.getOps<PipelineOp>());
  if (pipelines.empty())
    return module.emitError() << pass
                              << ": expected a chimera.pipeline, got "
                                 "none";
  return pipelines;
}

LogicalResult writeDocument(ModuleOp module, StringRef pass, StringRef path,
                            const std::string &text) {
  std::string error;
  if (StringRef input = inputAt(module, path); !input.empty())
    return module.emitError()
           << pass << ": " << path << ": expected another file than " << input;
  if (path != "-") {
    if (program::writeAtomically(path.str(), {std::as_bytes(std::span(text))},
                                 error))
      return success();
    return module.emitError() << pass << ": " << error;
  }
  llvm::outs() << text;
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return success();
  std::error_code code = llvm::outs().error();
  // Clear the error, because otherwise the destructor of the stream would end
  // the process.
  llvm::outs().clear_error();
  return module.emitError()
         << pass << ": cannot write to standard output: " << code.message();
}

} // namespace chimera
