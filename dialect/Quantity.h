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

/// The kind of a number with a unit. The comment of each kind lists its units.
/// A number without a unit is in the first of these units.
enum class Dimension {
  Bytes,          ///< B, kB, MB, GB, TB, KiB, MiB, GiB, TiB
  Time,           ///< ns, us, ms, s
  BytesPerSecond, ///< B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s
  Flop,           ///< FLOP, MFLOP, GFLOP, TFLOP
  FlopPerSecond   ///< FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s
};

/// Reads 17179869184, 16 GiB, "16 GiB" or "4.5 TFLOP/s". `value` is exact, in
/// the first unit of the dimension. A number and a unit with a slash must be in
/// quotes. If `hasUnit` is not null, it is set to whether the text has a unit.
/// Fails, with a diagnostic, if the text is not a whole number of the first
/// unit. If `places` is not null, a number without a unit may have a fraction.
/// The number is then `value` × 10^-`places`.
mlir::ParseResult parseQuantity(mlir::AsmParser &parser, Dimension dimension,
                                int64_t &value, bool *hasUnit = nullptr,
                                uint32_t *places = nullptr);

/// The text that parseQuantity reads as `value`, in the unit that needs the
/// fewest digits, or without a unit if none needs fewer. If two units need as
/// many digits, the larger unit.
std::string quantityText(Dimension dimension, int64_t value);

} // namespace chimera

#endif // CHIMERA_DIALECT_QUANTITY_H
