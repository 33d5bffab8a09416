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

/// `all`, which is kept as a list of all stages, or a list; then `fused` or
/// nothing.
static ParseResult parseRecompute(OpAsmParser &parser,
                                  DenseI32ArrayAttr &recompute, UnitAttr &fused,
                                  IntegerAttr stages) {
  Builder &builder = parser.getBuilder();
  if (succeeded(parser.parseOptionalKeyword("all"))) {
    // The verifier refuses other numbers.
    int64_t count = std::clamp<int64_t>(stages.getInt(), 0, UINT16_MAX);
    recompute = builder.getDenseI32ArrayAttr(
        llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(count))));
  } else {
    recompute = dyn_cast_or_null<DenseI32ArrayAttr>(
        DenseI32ArrayAttr::parse(parser, Type()));
    if (!recompute)
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("fused")))
    fused = builder.getUnitAttr();
  return success();
}

static void printRecompute(OpAsmPrinter &printer, Operation *,
                           DenseI32ArrayAttr recompute, UnitAttr fused,
                           IntegerAttr stages) {
  // The verifier has seen to it that as many stages are all of them.
  if (recompute && recompute.size() == stages.getInt())
    printer << "all";
  else if (recompute)
    recompute.print(printer);
  if (fused)
    printer << " fused";
}

/// An attribute that may be absent is not read by its own form.
static ParseResult parseLinkTimes(OpAsmParser &parser, LinkAttr &link) {
  link = llvm::dyn_cast_if_present<LinkAttr>(LinkAttr::parse(parser, {}));
  return success(link != nullptr);
}

static void printLinkTimes(OpAsmPrinter &printer, Operation *, LinkAttr link) {
  link.print(printer);
}

/// A part's number, which may be left out of the attributes where it is 0.
static ParseResult parsePart(OpAsmParser &parser, IntegerAttr &part) {
  return parser.parseAttribute(part, parser.getBuilder().getI32Type());
}

static void printPart(OpAsmPrinter &printer, Operation *, IntegerAttr part) {
  printer << (part ? part.getInt() : 0);
}

#define GET_OP_CLASSES
#include "dialect/Ops.cpp.inc"
