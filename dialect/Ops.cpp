//===- Ops.cpp - What TableGen makes of the ops ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace chimera;

/// A bare word for a string, `gpt2` for "gpt2".
static ParseResult parseWord(OpAsmParser &parser, StringAttr &attribute) {
  std::string word;
  if (parser.parseKeywordOrString(&word))
    return failure();
  attribute = parser.getBuilder().getStringAttr(word);
  return success();
}

static void printWord(OpAsmPrinter &printer, Operation *, StringAttr word) {
  printer.printKeywordOrString(word.getValue());
}

#define GET_OP_CLASSES
#include "dialect/Ops.cpp.inc"
