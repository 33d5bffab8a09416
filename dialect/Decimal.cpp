//===- Decimal.cpp - Numbers as people write them -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Decimal.h"

#include "llvm/ADT/StringExtras.h"

namespace chimera {

std::optional<Decimal> decimalOf(llvm::StringRef text) {
  // The most decimal places. No time and no size needs more.
  constexpr int64_t kMostPlaces = 18;
  bool isNegative = text.consume_front("-");
  auto [mantissa, exponentText] = text.split(text.contains('e') ? 'e' : 'E');
  auto [before, after] = mantissa.split('.');
  int64_t exponent = 0;
  bool hasExponent = mantissa.size() < text.size();
  exponentText.consume_front("+");
  if (hasExponent && exponentText.getAsInteger(10, exponent))
    return std::nullopt;
  std::string digits = before.str() + after.str();
  if (digits.empty() || !llvm::all_of(digits, llvm::isDigit))
    return std::nullopt;
  int64_t places = static_cast<int64_t>(after.size()) - exponent;
  while (places > 0 && digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    --places;
  }
  llvm::StringRef significant = llvm::StringRef(digits).ltrim('0');
  if (significant.empty())
    return Decimal();
  if (places > kMostPlaces || places < -kMostPlaces)
    return std::nullopt;
  std::string whole = (isNegative ? "-" : "") + significant.str();
  if (places < 0)
    whole.append(static_cast<size_t>(-places), '0');
  int64_t value = 0;
  if (llvm::StringRef(whole).getAsInteger(10, value))
    return std::nullopt;
  return Decimal(value, static_cast<uint32_t>(std::max<int64_t>(places, 0)));
}

int64_t powerOfTen(uint32_t exponent) {
  int64_t power = 1;
  while (exponent-- > 0)
    power *= 10;
  return power;
}

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Decimal &number) {
  if (number.isWhole())
    return os << number.digits;
  // Negate as an unsigned number, because the smallest int64_t has no positive
  // counterpart in int64_t.
  uint64_t magnitude = number.digits < 0 ? -static_cast<uint64_t>(number.digits)
                                         : static_cast<uint64_t>(number.digits);
  std::string digits = llvm::utostr(magnitude);
  if (digits.size() <= number.places)
    digits.insert(0, number.places + 1 - digits.size(), '0');
  digits.insert(digits.size() - number.places, 1, '.');
  return os << (number.digits < 0 ? "-" : "") << digits;
}

std::string textOf(const Decimal &number) {
  std::string text;
  llvm::raw_string_ostream(text) << number;
  return text;
}

} // namespace chimera
