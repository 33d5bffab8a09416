//===- SvgPalette.h - Colours of actions in pictures ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGPALETTE_H
#define CHIMERA_COMPILER_SCHEDULE_SVGPALETTE_H

#include "compiler/schedule/model/Problem.h"

#include <string>

namespace chimera::schedule::svg {

/// The colours of a problem's actions. Each kind has a hue. The shades of the
/// hue tell directions and chunks apart:
/// - one direction: chunk 0 is dark, the last chunk is pale;
/// - two directions: down is dark and up is pale. Chunk 0 has the extreme
///   shade. The shades of further chunks lie between the extremes.
///
/// Pale boxes have a dark edge, so that they look different from dark boxes in
/// black and white too. Colour-blind readers can tell the kinds apart.
class Palette {
public:
  explicit Palette(const Problem &problem);

  /// True if there are pipelines in both directions.
  bool hasDirections() const { return areTwo; }
  /// The most stages of one pipeline on a worker.
  int32_t chunks() const { return count; }

  /// The look of a box. Colours are like "#1f63b5".
  struct Shade {
    std::string fill, edge; ///< `edge` is empty if the box has none
    /// True if the text on the box is black, false if it is white. The contrast
    /// of the text with the box is at least 4.5.
    bool hasBlackText;
  };
  Shade shadeOf(Kind kind, bool up, int32_t chunk) const;

  /// The CSS classes of a box, for example "k0 d" or, with chunks, "k0 d1of4".
  std::string classOf(Kind kind, bool up, int32_t chunk) const;
  /// A CSS rule for each class, each on its own line. Palettes with equal
  /// hasDirections() and chunks() have the same rules. Any other two palettes
  /// have no class in common.
  std::string rules() const;

private:
  /// 0 for the dark end of the hue, 1 for the pale end.
  double paleness(bool up, int32_t chunk) const;

  bool areTwo; ///< directions
  int32_t count;
};

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGPALETTE_H
