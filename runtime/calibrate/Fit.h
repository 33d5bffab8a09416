//===- Fit.h - Two numbers for many times -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a message or a sum takes is described by what it takes whatever its size
// and what it takes for each byte. Sizes differ by a factor of a million, so
// the two are fitted to relative errors: as well to the microseconds of a small
// message as to the milliseconds of a large one.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_FIT_H
#define CHIMERA_RUNTIME_CALIBRATE_FIT_H

#include <cstdint>
#include <span>
#include <vector>

namespace chimera::runtime {

/// What something of so many bytes took.
struct Sized {
  uint64_t bytes;
  double nanoseconds;
  /// What errors are relative to: of a part of something, all of it. 0: to the
  /// time itself.
  double whole = 0;
};

struct Line {
  double base = 0;     ///< nanoseconds
  double perByte = 0;  ///< nanoseconds
  double residual = 0; ///< the largest relative error of it

  double at(uint64_t bytes) const {
    return base + perByte * static_cast<double>(bytes);
  }
};

/// The line with the least sum of squares of relative errors, of those whose
/// base is at least `leastBase` and whose time for each byte is not negative.
/// Errors are relative to a microsecond at least, as clocks and caches disturb
/// times by as much. All zeros for no points.
Line fitLine(std::span<const Sized> points, double leastBase = 0);

/// The largest relative error that `line` makes of the points.
double residualOf(const Line &line, std::span<const Sized> points);

/// The middle one; 0 for none.
double medianOf(std::vector<int64_t> values);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_FIT_H
