//===- SvgHeading.h - The lines above the rows of a picture -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGHEADING_H
#define CHIMERA_COMPILER_SCHEDULE_SVGHEADING_H

#include "compiler/schedule/timeline/SvgLegend.h"

namespace chimera::schedule::svg {

/// The title, the note and the legend above the rows, each in as many lines as
/// it needs.
class Heading {
public:
  /// Breaks lines so that they are at most `width` pixels wide. If `title` or
  /// `note` is empty, it has no line.
  Heading(const std::string &title, const std::string &note, Legend legend,
          double width);

  double height() const;
  std::string draw() const;

private:
  double legendTop() const;

  std::vector<std::string> title, note; ///< lines
  Legend legend;
};

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGHEADING_H
