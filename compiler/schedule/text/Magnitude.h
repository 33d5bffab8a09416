//===- Magnitude.h - Numbers for people -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TEXT_MAGNITUDE_H
#define CHIMERA_COMPILER_SCHEDULE_TEXT_MAGNITUDE_H

#include "compiler/schedule/text/TimeUnit.h"

#include <string_view>

namespace chimera::schedule {

/// `ticks` in units, as text: "7.5". Exact if the number is a decimal of finite
/// length. Otherwise it is rounded to four digits after the point: "0.3333".
std::string decimalNumber(int64_t ticks, int64_t perUnit);

/// "7.5 us": `number` and the unit, if the unit has a name.
std::string withUnit(const std::string &number, const TimeScale &scale);

/// "7.5 us": decimalNumber with the unit.
std::string decimalTime(int64_t ticks, const TimeScale &scale);

/// The unit in which a time is written. For large times it is larger than the
/// TimeUnit: "us", "ms" or "s" if the TimeUnit is a duration, otherwise the
/// TimeUnit times a power of a thousand, such as "10⁶".
struct Magnitude {
  double units; ///< length of the magnitude in TimeUnits
  std::string name;
};

/// The magnitude in which to write `time`, which is in units of `unit`. It is
/// `unit` itself if the time has at most four digits before the point.
/// Otherwise it is the smallest magnitude with at most three digits before the
/// point, or the largest one.
Magnitude magnitudeOf(double time, const TimeUnit &unit);

/// "39", "39 × 10⁹", "1.235 ms". If the time in units has at most four digits
/// before the point, up to ten digits are written. Otherwise the time is
/// rounded to four digits. In the largest magnitude, all digits before the
/// point are written.
std::string shortTime(double ticks, const TimeScale &scale);

/// "39.06 us", "1.2 × 10⁶": rounded to four digits. A duration uses the largest
/// unit in which it is at least one.
std::string roundedTime(double ticks, const TimeScale &scale);

/// The number of characters in a UTF-8 text; "10⁶" has three characters and
/// more bytes.
size_t characterCount(std::string_view text);

/// "25.0 %".
std::string percent(double share);

/// "4100 B", "4 KiB", "1.25 MiB", "16 GiB": exact below 1 MiB, otherwise
/// rounded to four digits.
std::string shortBytes(int64_t bytes);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TEXT_MAGNITUDE_H
