//===- chimera-lsp-server.cpp - Language server for editors ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"
#include "passes/describe/DescriptionInterface.h"
#include "tools/MlirDriver.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<chimera::ChimeraDialect>();
  chimera::registerDescriptionInterface(registry);
  chimera::hideLibraryOptions();
  chimera::setVersion("chimera-lsp-server");
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
