//===- chimera-opt.cpp - Look at and transform pipelines ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines.h"
#include "dialect/Chimera.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  chimera::registerPipelines();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::DialectRegistry registry;
  registry.insert<chimera::ChimeraDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "chimera optimizer driver\n", registry));
}
