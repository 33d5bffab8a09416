//===- chimera-opt.cpp - Look at and transform pipelines ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines.h"
#include "compiler/schedule/Registry.h"
#include "dialect/Chimera.h"
#include "tools/Arguments.h"
#include "tools/Start.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  chimera::guardOutputs();
  chimera::registerPipelines();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::DialectRegistry registry;
  registry.insert<chimera::ChimeraDialect>();
  llvm::SmallVector<char *> arguments = chimera::quietDiagnostics(argc, argv);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(arguments.size()), arguments.data(),
                        "chimera optimizer driver\n\nSchedules:\n" +
                            chimera::schedule::schemeHelp(),
                        registry));
}
