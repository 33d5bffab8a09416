//===- OriginNotes.cpp - Diagnostics on ops that passes made --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/OriginNotes.h"

#include "dialect/Chimera.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;

namespace chimera {

void addOriginNotes(MLIRContext &context) {
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    // The outermost name is the micro-batch; the pipeline and stage are inside.
    // Each name is put before the outer ones, so the text begins with the
    // pipeline.
    std::string names;
    LocationAttr location = diagnostic.getLocation();
    while (auto named = dyn_cast<NameLoc>(location)) {
      names = named.getName().str() + (names.empty() ? "" : " ") + names;
      location = named.getChildLoc();
    }
    if (!names.empty())
      diagnostic.attachNote() << "made for " << names;
    // Let the next handler print the diagnostic.
    return failure();
  });
}

void addOriginNotes(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ChimeraDialect *) {
    addOriginNotes(*context);
  });
}

} // namespace chimera
