//===- TimeUnit.h - Units of time -------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXT_TIMEUNIT_H
#define CHIMERA_COMPILER_SCHEDULE_TEXT_TIMEUNIT_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chimera::schedule {

/// A unit of time as users see it. In a chrome trace, all times are in
/// microseconds.
struct TimeUnit {
  const char *name;
  const char *summary;
  const char *axis;    ///< axis title in a picture: "time in ns"
  bool isDuration;     ///< true if the unit is a real time, such as ms
  double microseconds; ///< length of one unit in a chrome trace
};

/// All units. The first one is for costs without a unit.
std::span<const TimeUnit> timeUnits();

/// Null if no unit has this name.
const TimeUnit *findTimeUnit(std::string_view name);

/// "none, slot, …".
std::string timeUnitNames();

/// The scale in which the times of a problem are shown. A problem counts in
/// ticks, which are integers. If times have fractions, one unit is several
/// ticks.
struct TimeScale {
  const TimeUnit *unit = &timeUnits().front();
  /// The number of ticks in a unit, at least 1. If `perUnit` has no prime
  /// factors except 2 and 5, decimalNumber writes all times exactly.
  int64_t perUnit = 1;

  double units(double ticks) const {
    return ticks / static_cast<double>(perUnit);
  }
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXT_TIMEUNIT_H
