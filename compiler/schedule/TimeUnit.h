//===- TimeUnit.h - Units of time -------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMEUNIT_H
#define CHIMERA_COMPILER_SCHEDULE_TIMEUNIT_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chimera::schedule {

/// A unit of time, for people and for tools that count in microseconds.
struct TimeUnit {
  const char *name;
  const char *summary;
  const char *axis;    ///< under a picture: "time in ns"
  bool isDuration;     ///< true where one unit has a length of its own
  double microseconds; ///< of one unit, in a chrome trace
};

/// The first is that of costs without a unit.
std::span<const TimeUnit> timeUnits();

/// Null if there is no unit of that name.
const TimeUnit *findTimeUnit(std::string_view name);

/// "none, slot, …".
std::string timeUnitNames();

/// How the times of a problem are shown. A problem counts in ticks, which are
/// whole; where times have a fraction, several ticks make a unit.
struct TimeScale {
  const TimeUnit *unit = &timeUnits().front();
  /// Ticks in a unit, at least 1. Numbers of units are written exactly if its
  /// only prime factors are 2 and 5 (exactNumber).
  int64_t perUnit = 1;

  double units(double ticks) const {
    return ticks / static_cast<double>(perUnit);
  }
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMEUNIT_H
