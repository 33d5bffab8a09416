//===- Plugin.cpp - Chimera for another mlir-opt --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A shared object that an MLIR tool of the same version can load, such as
// Debian's mlir-opt with --load-dialect-plugin and --load-pass-plugin. It
// contains chimera's code but not MLIR's; it uses the MLIR symbols of the tool.
// A second copy of MLIR would have a second set of TypeIDs, and the tool would
// not recognise any op.

#include "compiler/PassPipelines.h"
#include "dialect/Chimera.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Chimera", CHIMERA_VERSION,
          [](mlir::DialectRegistry *registry) {
            registry->insert<chimera::ChimeraDialect>();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Chimera", CHIMERA_VERSION,
          [] { chimera::registerPipelines(); }};
}
