//===- SvgHeading.cpp - The lines above the rows of a picture -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgHeading.h"

#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

namespace chimera::schedule::svg {

// Lengths in pixels.
static constexpr double kTitleLine = 19;
/// The average width of a character in titles (see kNoteCharacter).
static constexpr double kTitleCharacter = 8.8;
/// The base line of the first line of text, from the top.
static constexpr double kFirst = 14;
/// The height between the legend and the rows. It has room for the headings
/// "idle" and "peak" of the numbers beside the rows.
static constexpr double kBelow = 18;

/// The lines of `text`, none if it is empty. A character is `character` pixels
/// wide on average.
static std::vector<std::string> linesOf(const std::string &text, double width,
                                        double character) {
  if (text.empty())
    return {};
  return wrap(text, static_cast<size_t>(width / character));
}

Heading::Heading(const std::string &title, const std::string &note,
                 Legend legend, double width)
    : title(linesOf(title, width, kTitleCharacter)),
      note(linesOf(note, width, kNoteCharacter)), legend(std::move(legend)) {}

double Heading::legendTop() const {
  if (title.empty() && note.empty())
    return 0;
  return kFirst - 2 + kTitleLine * static_cast<double>(title.size()) +
         kNoteLine * static_cast<double>(note.size());
}

double Heading::height() const {
  return legendTop() + legend.height() + kBelow;
}

std::string Heading::draw() const {
  std::string svg;
  double y = kFirst;
  for (const std::string &line : title) {
    svg += text("title", 0, y, line);
    y += kTitleLine;
  }
  for (const std::string &line : note) {
    svg += text("note", 0, y, line);
    y += kNoteLine;
  }
  return svg + legend.draw(legendTop());
}

} // namespace chimera::schedule::svg
