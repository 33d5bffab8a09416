//===- Magnitude.cpp - Times for people -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Magnitude.h"

#include <algorithm>
#include <cstdio>

namespace chimera::schedule {

__extension__ using Wide = __int128;

static bool hasName(const TimeUnit &unit) {
  return &unit != &timeUnits().front();
}

std::string exactNumber(int64_t ticks, int64_t perUnit) {
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

std::string exactTime(int64_t ticks, const TimeScale &scale) {
  return withUnit(exactNumber(ticks, scale.perUnit), scale);
}

/// Each a thousand times the one before.
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
  // Four digits are easily read; more are made three at most.
  if (time >= 9999.5)
    for (; i + 1 < names.size() && time / units >= 999.5; ++i)
      units *= 1000;
  std::string name(names[i]);
  if (own == std::end(kSeconds) && hasName(unit))
    name += (name.empty() ? "" : " ") + std::string(unit.name);
  return {units, std::move(name)};
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
  if (magnitude.name.empty())
    return digits;
  return std::string(digits) + (magnitude.name[0] == '1' ? " × " : " ") +
         magnitude.name;
}

} // namespace chimera::schedule
