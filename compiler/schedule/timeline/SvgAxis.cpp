//===- SvgAxis.cpp - The time axis of a picture ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgAxis.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <charconv>
#include <cmath>

namespace chimera::schedule::svg {

/// The least distance between two marks, in pixels.
static constexpr double kMark = 46;

/// The smallest number that is at least `least` and 1, 2 or 5 times a power of
/// ten. Requires `least` > 0.
static double niceStep(double least) {
  double power = std::pow(10, std::floor(std::log10(least)));
  for (double digit : {1, 2, 5})
    // Powers of ten below 1 are rounded, so allow a small error.
    if (digit * power >= least * (1 - 1e-9))
      return digit * power;
  return 10 * power;
}

std::string drawAxis(const Timeline &timeline, int64_t end, double plot,
                     double bottom) {
  double pixels = plot / static_cast<double>(end); // per tick
  Magnitude magnitude{1, ""};
  if (!timeline.slots)
    magnitude = magnitudeOf(timeline.scale.units(static_cast<double>(end)),
                            *timeline.scale.unit);
  // From here on, times are in units of the magnitude.
  double each =
      pixels * magnitude.units * static_cast<double>(timeline.scale.perUnit);
  double last = plot / each, tick = pixels / each;
  auto nameOf = [&](double time) {
    char digits[32];
    auto [textEnd, error] = std::to_chars(digits, digits + sizeof digits, time,
                                          std::chars_format::general, 10);
    return std::string(digits, textEnd);
  };
  auto marksOf = [&](double step) {
    return static_cast<int64_t>(last / step * (1 + 1e-9));
  };
  // One of the last two marks has the longest name.
  auto widest = [&](double step) {
    auto most = static_cast<double>(marksOf(step));
    return static_cast<double>(
        std::max(nameOf(step * most).size(),
                 nameOf(step * std::max(most - 1, 0.0)).size()));
  };
  double step = niceStep(std::max(kMark / each, tick));
  while (step * each < 16 + kDigits[0].first * widest(step))
    step = niceStep(1.1 * step);
  if (timeline.slots && pixels >= 2 * kDigits[0].first + 6)
    step = 1;
  std::string svg;
  for (int64_t i = 0, count = marksOf(step); i <= count; ++i) {
    double time = static_cast<double>(i) * step;
    double x = std::min(time * each, plot);
    svg += "<path class=\"mark\" d=\"M" + svgNumber(x) + " 0V" +
           svgNumber(bottom + 5) + "\"/>\n";
    if (timeline.slots && time < last * (1 - 1e-9))
      svg += text("axis", x + pixels / 2, bottom + 18, nameOf(time));
    else if (!timeline.slots)
      svg += text("axis", x, bottom + 18, nameOf(time));
  }
  std::string name = timeline.slots           ? timeline.axis()
                     : magnitude.name.empty() ? "time"
                                              : "time in " + magnitude.name;
  return svg + text("axis", plot / 2, bottom + 34, name);
}

} // namespace chimera::schedule::svg
