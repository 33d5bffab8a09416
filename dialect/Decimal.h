//===- Decimal.h - Numbers as people write them -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_DECIMAL_H
#define CHIMERA_DIALECT_DECIMAL_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>

namespace chimera {

/// The exact number digits × 10^-places. `places` is as small as possible, and
/// at least 0.
struct Decimal {
  Decimal(int64_t whole = 0) : digits(whole) {}
  Decimal(int64_t digits, uint32_t places) : digits(digits), places(places) {
    for (; this->places > 0 && this->digits % 10 == 0; --this->places)
      this->digits /= 10;
  }

  int64_t digits;
  uint32_t places = 0;

  bool isWhole() const { return places == 0; }
  bool operator==(const Decimal &) const = default;
};

/// Reads 3, -0.5, .5, 40e9 or 1.5e-3. None if the text is not a number, if its
/// digits do not fit into 64 bits, or if its last digit is more than 18 places
/// from the point.
std::optional<Decimal> decimalOf(llvm::StringRef text);

/// 10^`exponent`. Requires that `exponent` is at most 18.
int64_t powerOfTen(uint32_t exponent);

/// Prints 3, -0.5, 40000000000, 0.0015.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Decimal &number);
std::string textOf(const Decimal &number);

} // namespace chimera

#endif // CHIMERA_DIALECT_DECIMAL_H
