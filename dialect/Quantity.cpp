//===- Quantity.cpp - Numbers with units ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Quantity.h"

#include "dialect/Decimal.h"
#include "dialect/Spelling.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace chimera {

namespace {

struct Unit {
  StringRef name;
  int64_t size;
};

constexpr int64_t kKibi = 1024, kKilo = 1000;

/// The units of a dimension. The first has the size 1.
struct Units {
  ArrayRef<Unit> all;
  StringRef what;
};

constexpr Unit kBytes[] = {
    {"B", 1},
    {"kB", kKilo},
    {"MB", kKilo *kKilo},
    {"GB", kKilo *kKilo *kKilo},
    {"TB", kKilo *kKilo *kKilo *kKilo},
    {"KiB", kKibi},
    {"MiB", kKibi *kKibi},
    {"GiB", kKibi *kKibi *kKibi},
    {"TiB", kKibi *kKibi *kKibi *kKibi},
};
constexpr Unit kTimes[] = {
    {"ns", 1}, {"us", kKilo}, {"ms", kKilo *kKilo}, {"s", kKilo *kKilo *kKilo}};
constexpr Unit kByteRates[] = {
    {"B/s", 1},
    {"KiB/s", kKibi},
    {"MiB/s", kKibi *kKibi},
    {"GiB/s", kKibi *kKibi *kKibi},
    {"kB/s", kKilo},
    {"MB/s", kKilo *kKilo},
    {"GB/s", kKilo *kKilo *kKilo},
    {"TB/s", kKilo *kKilo *kKilo *kKilo},
};
constexpr Unit kFlops[] = {
    {"FLOP", 1},
    {"MFLOP", kKilo *kKilo},
    {"GFLOP", kKilo *kKilo *kKilo},
    {"TFLOP", kKilo *kKilo *kKilo *kKilo},
};
constexpr Unit kFlopRates[] = {
    {"FLOP/s", 1},
    {"GFLOP/s", kKilo *kKilo *kKilo},
    {"TFLOP/s", kKilo *kKilo *kKilo *kKilo},
    {"PFLOP/s", kKilo *kKilo *kKilo *kKilo *kKilo},
};

Units unitsOf(Dimension dimension) {
  switch (dimension) {
  case Dimension::Bytes:
    return {kBytes, "bytes, such as 4096 or 16 GiB"};
  case Dimension::Time:
    return {kTimes, "a time, such as 40 us"};
  case Dimension::BytesPerSecond:
    return {kByteRates, "bytes a second, such as \"9 GB/s\""};
  case Dimension::Flop:
    return {kFlops, "operations, such as 3.4 GFLOP"};
  case Dimension::FlopPerSecond:
    return {kFlopRates, "operations a second, such as \"4.5 TFLOP/s\""};
  }
  llvm_unreachable("no such dimension");
}

/// The value of `text` in the first of `units`. None if this value is not a
/// whole number.
std::optional<int64_t> valueOf(const Units &units, StringRef text) {
  text = text.trim();
  size_t end = text.find_last_of("0123456789.") + 1;
  std::optional<Decimal> number = decimalOf(text.take_front(end));
  StringRef name = text.drop_front(end).trim();
  const Unit *unit = name.empty()
                         ? &units.all.front()
                         : llvm::find_if(units.all, [&](const Unit &u) {
                             return u.name == name;
                           });
  if (!number || unit == units.all.end())
    return std::nullopt;
  // int64_t would overflow: the product of the digits of "10.025826 TFLOP/s"
  // and its unit needs 128 bits.
  __extension__ using Wide = __int128;
  Wide power = 1;
  for (uint32_t i = 0; i < number->places; ++i)
    if (__builtin_mul_overflow(power, 10, &power))
      return std::nullopt;
  Wide value = static_cast<Wide>(number->digits) * unit->size;
  if (value % power != 0 || value / power > INT64_MAX ||
      value / power < INT64_MIN)
    return std::nullopt;
  return static_cast<int64_t>(value / power);
}

} // namespace

ParseResult parseQuantity(AsmParser &parser, Dimension dimension,
                          int64_t &value, bool *hasUnit, uint32_t *places) {
  Units units = unitsOf(dimension);
  SMLoc at = parser.getCurrentLocation();
  std::string text;
  if (failed(parser.parseOptionalString(&text))) {
    const char *begin = at.getPointer();
    double number = 0;
    if (parseNumber(parser, number, /*mayHaveUnit=*/true))
      return failure();
    // The text of the number, without the blanks before the next token.
    text = StringRef(begin, parser.getCurrentLocation().getPointer() - begin)
               .take_while([](char c) {
                 return llvm::isAlnum(c) || c == '.' || c == '-' || c == '+';
               })
               .str();
    if (StringRef word = bareWordAt(parser); !word.empty()) {
      if (*word.end() == '/')
        return parser.emitError(at, "expected ")
               << units.what << ", in quotes as the unit has a slash";
      if (parser.parseKeyword(&word))
        return failure();
      text += (" " + word).str();
    }
  }
  const StringRef trimmed = StringRef(text).rtrim();
  const bool isBare = trimmed.empty() || !llvm::isAlpha(trimmed.back());
  if (hasUnit)
    *hasUnit = !isBare;
  if (std::optional<Decimal> number;
      places && isBare && (number = decimalOf(text))) {
    value = number->digits;
    *places = number->places;
    return success();
  }
  std::optional<int64_t> read = valueOf(units, text);
  if (!read) {
    InFlightDiagnostic error = parser.emitError(at, "expected ")
                               << units.what << ", got " << text << " (units: ";
    llvm::interleaveComma(units.all, error,
                          [&](const Unit &unit) { error << unit.name; });
    return error << ")";
  }
  value = *read;
  return success();
}

/// The text of `value` in this unit, without the name of the unit. Empty if it
/// would be below 1, or would need more than three decimal places.
static std::string textIn(const Unit &unit, int64_t value) {
  constexpr uint32_t kMostPlaces = 3;
  if (value < unit.size)
    return {};
  for (uint32_t places = 0; places <= kMostPlaces; ++places) {
    __extension__ using Wide = __int128;
    Wide scaled = static_cast<Wide>(value) * powerOfTen(places);
    if (scaled % unit.size == 0)
      return textOf(Decimal(static_cast<int64_t>(scaled / unit.size), places));
  }
  return {};
}

std::string quantityText(Dimension dimension, int64_t value) {
  std::string best = std::to_string(value);
  auto digitsOf = [](StringRef text) { return text.size() - text.count('.'); };
  // A time such as 116509 ns is easier to read as 116.509 us. An odd number of
  // bytes or operations is easier to read without a unit.
  size_t fewest = digitsOf(best) + (dimension == Dimension::Time ? 1 : 0);
  int64_t largest = 1;
  for (const Unit &unit : unitsOf(dimension).all.drop_front()) {
    std::string text = textIn(unit, value);
    size_t digits = digitsOf(text);
    if (text.empty() || digits > fewest ||
        (digits == fewest && (largest == 1 || unit.size < largest)))
      continue;
    fewest = digits;
    largest = unit.size;
    StringRef quote = unit.name.contains('/') ? "\"" : "";
    best = (quote + text + " " + unit.name + quote).str();
  }
  return best;
}

} // namespace chimera
