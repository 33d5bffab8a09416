//===- chimera-reduce.cpp - Makes a failing module small ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/PassPipelines.h"
#include "compiler/Reduce.h"
#include "compiler/Source.h"
#include "dialect/Chimera.h"
#include "tools/MlirDriver.h"
#include "tools/Start.h"

#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  chimera::guardOutputs();
  chimera::registerPipelines();
  chimera::registerReducePass();
  chimera::setVersion("chimera-reduce");
  mlir::DialectRegistry registry;
  registry.insert<chimera::ChimeraDialect>();
  llvm::ArrayRef<char *> arguments(argv, argc);
  if (chimera::reportBadOutputs(arguments) ||
      chimera::reportBadSources(arguments))
    return 1;
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
