//===- Magnitude.cpp - Large times for people -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Magnitude.h"

#include <algorithm>
#include <cstdio>

namespace chimera::schedule {

/// Each a thousand times the one before.
static constexpr std::string_view kSeconds[] = {"ns", "us", "ms", "s"};
static constexpr std::string_view kPowers[] = {"",     "10³",  "10⁶", "10⁹",
                                               "10¹²", "10¹⁵", "10¹⁸"};

Magnitude magnitudeOf(double time, const TimeUnit &unit) {
  std::span<const std::string_view> names = kPowers;
  bool bare = &unit == &timeUnits().front();
  const auto *own = std::ranges::find(kSeconds, unit.name);
  if (own != std::end(kSeconds))
    names = std::span(own, std::end(kSeconds));
  double units = 1;
  size_t i = 0;
  // Four digits are read as they are; what has more gets three at most.
  if (time >= 9999.5)
    for (; i + 1 < names.size() && time / units >= 999.5; ++i)
      units *= 1000;
  std::string name(names[i]);
  if (own == std::end(kSeconds) && !bare)
    name += (name.empty() ? "" : " ") + std::string(unit.name);
  return {units, std::move(name)};
}

std::string shortTime(double time, const TimeUnit &unit) {
  Magnitude magnitude = magnitudeOf(time, unit);
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
