//===- Magnitude.h - Numbers for people -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H
#define CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H

#include "compiler/schedule/TimeUnit.h"

#include <string_view>

namespace chimera::schedule {

/// "7.5": how many units `ticks` are. Exact if that is a finite decimal, else
/// rounded to four digits after the point: "0.3333".
std::string exactNumber(int64_t ticks, int64_t perUnit);

/// "7.5 us": `number`, which counts units, and the unit where it has a name.
std::string withUnit(const std::string &number, const TimeScale &scale);

/// "7.5 us", exactly.
std::string exactTime(int64_t ticks, const TimeScale &scale);

/// A multiple of a unit, to write large times with: "us", "ms" or "s" where the
/// unit is a duration, else a power of a thousand of the unit, "10⁶".
struct Magnitude {
  double units; ///< of TimeUnit in one
  std::string name;
};

/// One unit where `time`, in units, has at most four digits before the point,
/// else the least magnitude in which it has at most three, or the largest.
Magnitude magnitudeOf(double time, const TimeUnit &unit);

/// "39", "39 × 10⁹", "1.235 ms": with at most ten digits where the time has at
/// most four before the point, else rounded to four.
std::string shortTime(double ticks, const TimeScale &scale);

/// "39.06 us", "1.2 × 10⁶": rounded to four digits, a duration in the largest
/// unit of which it is at least one.
std::string roundedTime(double ticks, const TimeScale &scale);

/// Characters of "10⁶" and the like, which has more bytes: of UTF-8.
size_t lengthOf(std::string_view text);

/// "25.0 %".
std::string percent(double share);

/// "4100 B", "4 KiB", "1.25 MiB", "16 GiB": exact below a MiB, else rounded to
/// four digits.
std::string shortBytes(int64_t bytes);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H
