//===- Magnitude.cpp - Numbers for people ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <numeric>

namespace chimera::schedule {

__extension__ using Wide = __int128;

static bool hasName(const TimeUnit &unit) {
  return &unit != &timeUnits().front();
}

/// True if all multiples of 1 / `parts` are decimals of finite length.
static bool isDecimal(int64_t parts) {
  for (int64_t prime : {2, 5})
    while (parts % prime == 0)
      parts /= prime;
  return parts == 1;
}

std::string decimalNumber(int64_t ticks, int64_t perUnit) {
  if (!isDecimal(perUnit / std::gcd(perUnit, ticks))) {
    char text[64];
    std::snprintf(text, sizeof text, "%.4f",
                  static_cast<double>(ticks) / static_cast<double>(perUnit));
    return text;
  }
  std::string number = std::to_string(ticks / perUnit);
  Wide rest = ticks % perUnit;
  if (rest > 0)
    number += ".";
  for (; rest > 0; rest %= perUnit) {
    rest *= 10;
    number += static_cast<char>('0' + static_cast<int>(rest / perUnit));
  }
  return number;
}

std::string withUnit(const std::string &number, const TimeScale &scale) {
  return hasName(*scale.unit) ? number + " " + scale.unit->name : number;
}

std::string decimalTime(int64_t ticks, const TimeScale &scale) {
  return withUnit(decimalNumber(ticks, scale.perUnit), scale);
}

/// Each unit is a thousand times the previous unit.
static constexpr std::string_view kSeconds[] = {"ns", "us", "ms", "s"};
static constexpr std::string_view kPowers[] = {"",     "10³",  "10⁶", "10⁹",
                                               "10¹²", "10¹⁵", "10¹⁸"};

Magnitude magnitudeOf(double time, const TimeUnit &unit) {
  std::span<const std::string_view> names = kPowers;
  const auto *own = std::ranges::find(kSeconds, unit.name);
  if (own != std::end(kSeconds))
    names = std::span(own, std::end(kSeconds));
  double units = 1;
  size_t i = 0;
  // Numbers with up to four digits before the point are easy to read and stay
  // as they are. Longer numbers get a larger unit, in which they have at most
  // three digits before the point.
  if (time >= 9999.5)
    for (; i + 1 < names.size() && time / units >= 999.5; ++i)
      units *= 1000;
  std::string name(names[i]);
  if (own == std::end(kSeconds) && hasName(unit))
    name += (name.empty() ? "" : " ") + std::string(unit.name);
  return {units, std::move(name)};
}

/// "39 ms", "39 × 10⁶", "39".
static std::string withName(const std::string &digits,
                            const std::string &magnitude) {
  if (magnitude.empty())
    return digits;
  return digits + (magnitude[0] == '1' ? " × " : " ") + magnitude;
}

std::string shortTime(double ticks, const TimeScale &scale) {
  double time = scale.units(ticks);
  Magnitude magnitude = magnitudeOf(time, *scale.unit);
  char digits[32];
  double value = time / magnitude.units;
  const char *form = magnitude.units == 1 ? "%.10g"
                     : value < 9999.5     ? "%.4g"
                                          : "%.0f";
  std::snprintf(digits, sizeof digits, form, value);
  return withName(digits, magnitude.name);
}

std::string roundedTime(double ticks, const TimeScale &scale) {
  double time = scale.units(ticks);
  std::string name;
  if (const auto *own = std::ranges::find(kSeconds, scale.unit->name);
      own != std::end(kSeconds)) {
    for (; time < 0.99995 && time > 0 && own != kSeconds; --own)
      time *= 1000;
    for (; time >= 999.95 && own + 1 != std::end(kSeconds); ++own)
      time /= 1000;
    name = *own;
  } else {
    Magnitude magnitude = magnitudeOf(time, *scale.unit);
    time /= magnitude.units;
    name = std::move(magnitude.name);
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", time);
  return withName(digits, name);
}

size_t characterCount(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

std::string percent(double share) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, 100 * share,
                                    std::chars_format::fixed, 1);
  return std::string(text, end) + " %";
}

std::string shortBytes(int64_t bytes) {
  constexpr int64_t kBytesPerMiB = int64_t{1} << 20;
  if (bytes < kBytesPerMiB)
    return bytes > 0 && bytes % 1024 == 0
               ? std::to_string(bytes / 1024) + " KiB"
               : std::to_string(bytes) + " B";
  static constexpr const char *kUnits[] = {"MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / kBytesPerMiB;
  size_t i = 0;
  for (; i + 1 < std::size(kUnits) && value >= 999.95; ++i)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[i]);
  return text;
}

} // namespace chimera::schedule
