//===- SvgLegend.h - The legend of a picture --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H
#define CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule::svg {

/// An entry of a legend.
struct LegendEntry {
  std::string style; ///< the CSS classes of its box
  std::string name;

  double width() const;
};

/// One entry for each thing that the picture of `timeline` shows.
std::vector<LegendEntry> legendOf(const Timeline &timeline);

double widthOf(const std::vector<LegendEntry> &entries);

/// The entries in one line. `y` is the upper edge of their boxes.
std::string drawLegend(const std::vector<LegendEntry> &entries, double y);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H
