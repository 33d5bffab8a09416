//===- TimeUnit.cpp - Units of time ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/text/TimeUnit.h"

#include <array>

namespace chimera::schedule {

std::span<const TimeUnit> timeUnits() {
  static constexpr std::array<TimeUnit, 7> all = {{
      {"none", "costs have no unit; a chrome trace shows one as 1 us", "time",
       false, 1},
      {"slot",
       "costs are in slots of equal length; a chrome trace shows one as 1 us",
       "time in slots", false, 1},
      {"flop",
       "costs are in floating-point operations; a chrome trace shows one as 1 "
       "us",
       "time in flop", false, 1},
      {"s", "costs are in seconds", "time in s", true, 1e6},
      {"ms", "costs are in milliseconds", "time in ms", true, 1e3},
      {"us", "costs are in microseconds", "time in us", true, 1},
      {"ns", "costs are in nanoseconds", "time in ns", true, 1e-3},
  }};
  return all;
}

const TimeUnit *findTimeUnit(std::string_view name) {
  for (const TimeUnit &unit : timeUnits())
    if (name == unit.name)
      return &unit;
  return nullptr;
}

std::string timeUnitNames() {
  std::string names;
  for (const TimeUnit &unit : timeUnits())
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

} // namespace chimera::schedule
