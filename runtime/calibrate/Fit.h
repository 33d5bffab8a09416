//===- Fit.h - Fits lines to measured times ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The duration of a message or a sum is described as a base time plus a time
// for each byte. Sizes differ by a factor of a million, so the line is fitted
// to relative errors. Then the line fits the microseconds of a small message as
// well as the milliseconds of a large message.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_FIT_H
#define CHIMERA_RUNTIME_CALIBRATE_FIT_H

#include <cstdint>
#include <span>
#include <vector>

namespace chimera::runtime {

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB; // in bytes

/// A size and its measured duration.
struct TimedSize {
  uint64_t bytes;
  double nanoseconds;
  /// Errors are relative to this time. For a part of a message, it is the time
  /// of the whole message. 0: errors are relative to `nanoseconds`.
  double whole = 0;
};

struct Line {
  double base = 0;     ///< nanoseconds
  double perByte = 0;  ///< nanoseconds
  double residual = 0; ///< the largest relative error

  double nanosecondsFor(uint64_t bytes) const {
    return base + perByte * static_cast<double>(bytes);
  }
};

/// The line with the least sum of squared relative errors. Its base is at least
/// `leastBase`, and its time for each byte is not negative. Errors are relative
/// to at least 1 µs, because clocks and caches disturb times by that much.
/// Returns zeros if there are no points.
Line fitLine(std::span<const TimedSize> points, double leastBase = 0);

/// The largest relative error of `line` over all points.
double residualOf(const Line &line, std::span<const TimedSize> points);

/// The median; 0 if there are no values.
double medianOf(std::vector<int64_t> values);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_FIT_H
