//===- NumberFields.cpp - Numbers of an attribute -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/NumberFields.h"

#include "dialect/Spelling.h"

using namespace mlir;

namespace chimera {

ParseResult parseNumberFields(AsmParser &parser, ArrayRef<NumberField> fields) {
  SmallVector<StringRef> names, left;
  for (const NumberField &field : fields)
    names.push_back(field.name);
  left = names;
  auto parseField = [&]() -> ParseResult {
    StringRef name;
    if (parseFieldName(parser, names, left, name) || parser.parseEqual())
      return failure();
    const NumberField *field = llvm::find_if(
        fields, [&](const NumberField &f) { return f.name == name; });
    return field->dimension
               ? parseQuantity(parser, *field->dimension, *field->value,
                               field->hasUnit, field->places)
               : parseWholeNumber(parser, *field->value);
  };
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseField))
    return failure();
  for (const NumberField &field : fields)
    if (field.required && llvm::is_contained(left, field.name))
      return parser.emitError(at, "expected a field ") << field.name;
  return success();
}

} // namespace chimera
