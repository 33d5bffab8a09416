//===- Fit.cpp - Fits lines to measured times -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Fit.h"

#include <algorithm>
#include <cmath>

using namespace chimera::runtime;

/// Errors are relative to at least this number of nanoseconds.
static constexpr double kLeast = 1000;

static double scaleOf(const TimedSize &point) {
  return std::max(point.whole > 0 ? point.whole : point.nanoseconds, kLeast);
}

double chimera::runtime::residualOf(const Line &line,
                                    std::span<const TimedSize> points) {
  double most = 0;
  for (const TimedSize &point : points)
    most = std::max(
        most, std::abs(line.nanosecondsFor(point.bytes) - point.nanoseconds) /
                  scaleOf(point));
  return most;
}

Line chimera::runtime::fitLine(std::span<const TimedSize> points,
                               double leastBase) {
  if (points.empty())
    return {};
  // The sums of w, w x, w x x, w y and w x y over all points (x, y). The weight
  // w makes errors relative.
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  for (const TimedSize &point : points) {
    const double x = static_cast<double>(point.bytes), y = point.nanoseconds;
    const double weight = 1 / std::pow(scaleOf(point), 2);
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wy += weight * y;
    wxy += weight * x * y;
  }
  Line line;
  const double determinant = w * wxx - wx * wx;
  if (determinant > 0) {
    line.base = (wy * wxx - wx * wxy) / determinant;
    line.perByte = (w * wxy - wx * wy) / determinant;
  } else {
    line.base = wy / w;
  }
  // If a coefficient of the unconstrained fit is below its bound, this
  // coefficient is equal to its bound in the best line within the bounds.
  if (line.base < leastBase)
    line = {.base = leastBase, .perByte = (wxy - leastBase * wx) / wxx};
  if (line.perByte < 0)
    line = {.base = std::max(wy / w, leastBase), .perByte = 0};
  line.residual = residualOf(line, points);
  return line;
}

double chimera::runtime::medianOf(std::vector<int64_t> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return static_cast<double>(*middle);
}
