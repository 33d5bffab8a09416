//===- NumberFields.h - Numbers of an attribute -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_NUMBERFIELDS_H
#define CHIMERA_DIALECT_NUMBERFIELDS_H

#include "dialect/Quantity.h"

namespace chimera {

/// A number of an attribute, written in < >.
struct NumberField {
  llvm::StringRef name;
  int64_t *value;
  bool required = true;
  /// The dimension of its unit. None if it has no unit.
  std::optional<Dimension> dimension = {};
  /// If not null, set to whether the text has a unit.
  bool *hasUnit = nullptr;
  /// If not null, a number without a unit may have a fraction (parseQuantity).
  uint32_t *places = nullptr;
};

/// Reads <name = number, …>, in any order. Optional fields that are not given
/// keep their value.
mlir::ParseResult parseNumberFields(mlir::AsmParser &parser,
                                    llvm::ArrayRef<NumberField> fields);

} // namespace chimera

#endif // CHIMERA_DIALECT_NUMBERFIELDS_H
