//===- SvgStyle.h - How pictures look ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SVGSTYLE_H
#define CHIMERA_COMPILER_SCHEDULE_SVGSTYLE_H

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chimera::schedule::svg {

// Lengths in pixels.
inline constexpr double kMargin = 20;
/// From a line of a title, or of a note, to the next.
inline constexpr double kTitleLine = 19, kNoteLine = 15;
inline constexpr double kAxis = 44;
inline constexpr double kRow = 26, kBox = 22;
/// Characters of the widest font that a viewer may have for titles and notes,
/// on average over words; none is more than twice as wide.
inline constexpr double kTitleCharacter = 8.8, kNoteCharacter = 6.2;
/// Widths of a digit, and the font sizes they belong to.
inline constexpr std::array<std::pair<double, const char *>, 2> kDigits = {
    {{6.7, "n"}, {4.6, "s"}}};

/// "forward": a kind of actions by its number.
const char *nameOfKind(size_t kind);

/// The classes of a kind's boxes, "k0 u": down boxes are dark with white text,
/// up boxes pale with dark text and a dark edge, so that they differ without
/// colour too.
std::string classOf(size_t kind, bool up);

/// A line of words.
std::string text(const char *style, double x, double y,
                 const std::string &content);

/// `text` in lines of at most `most` characters, cut at blanks. A longer word
/// than half a line may have wide characters only, so it is cut too.
std::vector<std::string> wrap(std::string_view text, size_t most);

/// The words above a picture, room for a legend below them included.
class Heading {
public:
  /// In lines that are at most `width` pixels wide.
  Heading(const std::string &title, const std::string &note, double width);

  double height() const;
  std::string draw() const;

private:
  std::vector<std::string> title, note; ///< lines
};

/// One SVG 1.1 document of that size.
std::string document(double width, double height, const std::string &body);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGSTYLE_H
