//===- SvgAxis.cpp - The time axis of a picture ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgAxis.h"

#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <charconv>
#include <cmath>

namespace chimera::schedule::svg {

/// The least distance between two marks, in pixels.
static constexpr double kMark = 46;
/// The relative error that is allowed when quotients of times are compared.
/// Powers of ten below 1 are not exact as doubles, so the quotients are not
/// exact either.
static constexpr double kError = 1e-9;

/// The smallest number that is at least `least` and 1, 2 or 5 times a power of
/// ten. Requires `least` > 0.
static double niceStep(double least) {
  double power = std::pow(10, std::floor(std::log10(least)));
  for (double digit : {1, 2, 5})
    if (digit * power >= least * (1 - kError))
      return digit * power;
  return 10 * power;
}

std::string drawAxis(const Timeline &timeline, const Axis &axis,
                     double bottom) {
  // From here on, times are in units of the magnitude.
  double unit =
      axis.magnitude.units * static_cast<double>(timeline.scale.perUnit);
  double first = axis.begin / unit, last = axis.end / unit, tick = 1 / unit;
  double each = axis.perTick() * unit;
  auto nameOf = [&](double time) {
    char digits[32];
    auto [textEnd, error] = std::to_chars(digits, digits + sizeof digits, time,
                                          std::chars_format::general, 10);
    return std::string(digits, textEnd);
  };
  auto lastMark = [&](double step) {
    return static_cast<int64_t>(last / step * (1 + kError));
  };
  // The number of characters of the widest name, which is at one of the last
  // two marks.
  auto widest = [&](double step) {
    auto most = static_cast<double>(lastMark(step));
    return static_cast<double>(
        std::max(nameOf(step * most).size(),
                 nameOf(step * std::max(most - 1, 0.0)).size()));
  };
  double step = niceStep(std::max(kMark / each, tick));
  while (step * each < 16 + kDigits[0].first * widest(step))
    step = niceStep(1.1 * step);
  if (timeline.slots && axis.perTick() >= 2 * kDigits[0].first + 6)
    step = 1;
  std::string svg;
  auto mark = [&](double time) {
    double x = std::clamp((time - first) * each, 0.0, axis.plot);
    svg += "<path class=\"mark\" d=\"M" + svgNumber(x) + " 0V" +
           svgNumber(bottom + 5) + "\"/>\n";
    if (timeline.slots && time < last * (1 - kError))
      svg += text("axis", x + axis.perTick() / 2, bottom + 18, nameOf(time));
    else if (!timeline.slots)
      svg += text("axis", x, bottom + 18, nameOf(time));
  };
  auto next = static_cast<int64_t>(std::ceil(first / step * (1 - kError)));
  if (next > lastMark(step))
    mark(first); // the plot is between two marks, so its left edge gets one
  for (; next <= lastMark(step); ++next)
    mark(static_cast<double>(next) * step);
  std::string name = timeline.slots ? timeline.axis()
                     : axis.magnitude.name.empty()
                         ? "time"
                         : "time in " + axis.magnitude.name;
  return svg + text("axis", axis.plot / 2, bottom + 34, name);
}

} // namespace chimera::schedule::svg
