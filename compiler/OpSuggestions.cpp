//===- OpSuggestions.cpp - The op that a misspelt name means --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/OpSuggestions.h"

#include "dialect/Chimera.h"
#include "dialect/Spelling.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace chimera {

/// The op of this dialect that is most similar to `name`. Empty if none is.
/// Both names are without "chimera.".
static StringRef nearestOp(MLIRContext *context, StringRef name) {
  SmallVector<StringRef> ops;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (op.getDialectNamespace() == ChimeraDialect::getDialectNamespace())
      ops.push_back(op.stripDialect());
  return mostSimilarWord(ops, name);
}

/// "stag" from MLIR's error "custom op 'chimera.stag' is unknown". Empty for
/// other messages.
static StringRef unknownOpOf(StringRef message) {
  if (!message.consume_front("custom op 'chimera."))
    return {};
  auto [name, rest] = message.split('\'');
  return rest.starts_with(" is unknown") ? name : StringRef();
}

void addOpSuggestions(MLIRContext &context) {
  context.getDiagEngine().registerHandler([&context](Diagnostic &diagnostic) {
    const std::string message = diagnostic.str();
    if (StringRef name = unknownOpOf(message); !name.empty())
      if (StringRef nearest = nearestOp(&context, name); !nearest.empty())
        diagnostic << ": did you mean chimera." << nearest << "?";
    // Let the next handler print the diagnostic.
    return failure();
  });
}

void addOpSuggestions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ChimeraDialect *) {
    addOpSuggestions(*context);
  });
}

} // namespace chimera
