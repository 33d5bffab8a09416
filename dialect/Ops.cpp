//===- Ops.cpp - Generated code of the ops --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace chimera;

/// Parses the index of a part. If the attribute is absent, printPart prints 0.
static ParseResult parsePart(OpAsmParser &parser, IntegerAttr &part) {
  return parser.parseAttribute(part, parser.getBuilder().getI32Type());
}

static void printPart(OpAsmPrinter &printer, Operation *, IntegerAttr part) {
  printer << (part ? part.getInt() : 0);
}

#define GET_OP_CLASSES
#include "dialect/Ops.cpp.inc"
