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

/// The units of a dimension. Printing uses only the last `printed` of them.
/// These are in ascending order.
struct Units {
  ArrayRef<Unit> all;
  size_t printed;
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
    return {kBytes, 4, "bytes, such as 4096 or 16 GiB"};
  case Dimension::Time:
    return {kTimes, 3, "a time, such as 40 us"};
  case Dimension::BytesPerSecond:
    return {kByteRates, 4, "bytes a second, such as \"9 GB/s\""};
  case Dimension::Flop:
    return {kFlops, 3, "operations, such as 3.4 GFLOP"};
  case Dimension::FlopPerSecond:
    return {kFlopRates, 3, "operations a second, such as \"4.5 TFLOP/s\""};
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

/// A value that is this many times a unit, or more, is not printed in that
/// unit.
static constexpr int64_t kMostUnits = 10000;

std::string quantityText(Dimension dimension, int64_t value) {
  Units units = unitsOf(dimension);
  for (const Unit &unit : llvm::reverse(units.all.take_back(units.printed))) {
    // Up to three decimal places for decimal units, none for binary units.
    bool isBinary = unit.size % kKibi == 0 && unit.size % kKilo != 0;
    int64_t least =
        isBinary ? unit.size : std::max<int64_t>(unit.size / 1000, 1);
    if (value < unit.size || value % least != 0 ||
        value / unit.size >= kMostUnits)
      continue;
    std::string text;
    llvm::raw_string_ostream os(text);
    Decimal number(value / unit.size);
    if (int64_t rest = value % unit.size; rest != 0)
      number = *decimalOf(std::to_string(value / least) + "e-3");
    bool isQuoted = unit.name.contains('/');
    os << (isQuoted ? "\"" : "") << number << ' ' << unit.name
       << (isQuoted ? "\"" : "");
    return text;
  }
  return std::to_string(value);
}

} // namespace chimera
