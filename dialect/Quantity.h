//===- Quantity.h - Numbers with units --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_QUANTITY_H
#define CHIMERA_DIALECT_QUANTITY_H

#include "mlir/IR/OpImplementation.h"

#include <optional>
#include <string>

namespace chimera {

/// What a number counts, and in what where no unit stands behind it.
enum class Dimension {
  Bytes,          ///< B, kB, MB, GB, TB, KiB, MiB, GiB, TiB
  Time,           ///< ns, us, ms, s; nanoseconds without
  BytesPerSecond, ///< those of bytes and "/s"
  Flop,           ///< FLOP, MFLOP, GFLOP, TFLOP
  FlopPerSecond   ///< FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s
};

/// Reads 17179869184, 16 GiB, "16 GiB" or "4.5 TFLOP/s", exactly: a number that
/// is whole in the dimension's own unit. Units with a slash are in quotes with
/// their number. `hasUnit`, if not null, is told whether there was a unit.
mlir::ParseResult parseQuantity(mlir::AsmParser &parser, Dimension dimension,
                                int64_t &value, bool *hasUnit = nullptr);

/// The text that parseQuantity reads as `value`, with the largest unit that
/// makes it short.
std::string quantityText(Dimension dimension, int64_t value);

} // namespace chimera

#endif // CHIMERA_DIALECT_QUANTITY_H
