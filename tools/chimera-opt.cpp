//===- chimera-opt.cpp - Prints and transforms pipelines ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/OpSuggestions.h"
#include "compiler/OriginNotes.h"
#include "compiler/PassPipelines.h"
#include "compiler/Source.h"
#include "compiler/schedule/families/Registry.h"
#include "dialect/Chimera.h"
#include "tools/MlirDriver.h"
#include "tools/Start.h"

#include "mlir/Debug/Counter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

/// Registers the options that MlirOptMain would register, so that some of them
/// can be hidden from --help.
static void registerOptions(mlir::DialectRegistry &registry) {
  mlir::MlirOptMainConfig::registerCLOptions(registry);
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  mlir::tracing::DebugCounter::registerCLOptions();
  chimera::hideLibraryOptions(nullptr, "chimera-partition");
  chimera::setVersion("chimera-opt");
}

int main(int argc, char **argv) {
  chimera::guardOutputs();
  chimera::registerPipelines();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::DialectRegistry registry;
  registry.insert<chimera::ChimeraDialect>();
  chimera::addOriginNotes(registry);
  chimera::addOpSuggestions(registry);
  registerOptions(registry);
  llvm::SmallVector<char *> arguments = chimera::withReadableBytecode(
      chimera::withoutOpsInDiagnostics(argc, argv));
  if (chimera::reportBadOutputs(arguments) ||
      chimera::reportBadSources(arguments))
    return 1;
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(arguments.size()), arguments.data(),
                        "chimera optimizer driver\n\nBytecode "
                        "(--emit-bytecode) is of version 4, which tools "
                        "without this dialect read too; "
                        "--emit-bytecode-version=N writes another\n\n"
                        "Schedules:\n" +
                            chimera::schedule::schemeHelp(),
                        registry));
}
