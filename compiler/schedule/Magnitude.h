//===- Magnitude.h - Large times for people ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H
#define CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H

#include "compiler/schedule/Timeline.h"

namespace chimera::schedule {

/// What times are counted in where they are shown short: "us", "ms" and "s"
/// where they have a unit, else a power of a thousand of a unit, "10⁶".
struct Magnitude {
  double units; ///< of TimeUnit in one
  std::string name;
};

/// One unit where `time` has at most four digits in it, else the least in which
/// it has at most three before the point, or the largest there is.
Magnitude magnitudeOf(double time, const TimeUnit &unit);

/// "39", "39 × 10⁹", "1.235 ms": exact where `time` has at most four digits,
/// else rounded to four.
std::string shortTime(double time, const TimeUnit &unit);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MAGNITUDE_H
