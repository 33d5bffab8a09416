//===- SvgLegend.h - The legend of a picture --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H
#define CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H

#include "compiler/schedule/timeline/SvgAxis.h"
#include "compiler/schedule/timeline/SvgPalette.h"

namespace chimera::schedule::svg {

/// A box of a legend.
struct LegendBox {
  std::string style; ///< its CSS classes
  std::string label = {};
  bool isTextBlack = false;
  bool isLine = false; ///< of low height, like a line below a row
};

/// An entry of a legend: boxes, and a name after the boxes.
struct LegendEntry {
  std::vector<LegendBox> boxes; ///< at least one
  std::string name;
};

/// An entry for each kind of box or line that a picture of the timelines shows
/// in the range of `axis`. The entry of a kind of action has a box for each
/// chunk. If labels have marks of chunks (chunkMark), an entry explains the
/// marks. Requires timelines of one problem, and its palette.
std::vector<LegendEntry> legendOf(std::span<const Timeline *const> timelines,
                                  const Palette &palette, const Axis &axis);

/// The entries in as many lines as they need.
class Legend {
public:
  /// Lines are at most `width` pixels wide. Requires a width of at least
  /// kLeastWidth.
  Legend(std::span<const LegendEntry> entries, double width);

  double height() const;
  /// `y` is the upper edge.
  std::string draw(double y) const;

private:
  std::string svg; ///< with the upper edge 0
  size_t lines = 1;
};

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGLEGEND_H
