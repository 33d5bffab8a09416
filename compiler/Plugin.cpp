//===- Plugin.cpp - Chimera for another mlir-opt --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A shared object that a MLIR tool of the same version loads: Debian's mlir-opt
// with --load-dialect-plugin and --load-pass-plugin. It holds chimera's code
// and none of MLIR's, whose symbols it finds in the tool: a second copy would
// bring a second set of TypeIDs, under which no op is what it is.

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
