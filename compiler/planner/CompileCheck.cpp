//===- CompileCheck.cpp - Whether a planned pipeline compiles -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/CompileCheck.h"

#include "compiler/PassPipelines.h"
#include "dialect/Chimera.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace chimera {

std::string compileFault(const std::string &text) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ChimeraDialect>();
  context.printOpOnDiagnostic(false);
  std::string fault;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (fault.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      fault = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  PassManager manager(&context);
  manager.enableVerifier(false);
  buildPipeline(manager, Phase::Described, Phase::Allocated,
                /*checked=*/false);
  if (module && succeeded(manager.run(*module)))
    return {};
  return fault.empty() ? "its passes failed" : fault;
}

} // namespace chimera
