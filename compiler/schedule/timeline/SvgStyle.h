//===- SvgStyle.h - Styles and text of pictures -----------------*- C++ -*-===//
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
/// Distances between the lines of a title and of a note.
inline constexpr double kTitleLine = 19, kNoteLine = 15;
inline constexpr double kAxis = 44;
inline constexpr double kRow = 26, kBox = 22;
/// Average widths of a character in titles and notes, in the widest font that a
/// viewer may use. No character is more than twice as wide.
inline constexpr double kTitleCharacter = 8.8, kNoteCharacter = 6.2;
/// Widths of a digit, each with the CSS class of its font size.
inline constexpr std::array<std::pair<double, const char *>, 2> kDigits = {
    {{6.7, "n"}, {4.6, "s"}}};

/// The name of a kind of actions: "forward" for kind 0.
const char *nameOfKind(size_t kind);

/// The CSS classes of a kind's boxes, for example "k0 u". Down boxes are dark
/// with white text. Up boxes are pale with dark text and a dark edge, so they
/// differ in black and white too.
std::string classOf(size_t kind, bool up);

/// One line of text. `style` is its CSS class.
std::string text(const char *style, double x, double y,
                 const std::string &content);

/// `text` in lines of at most `most` characters, broken at blanks. Words longer
/// than half a line are broken too, as their characters may be twice as wide as
/// the average.
std::vector<std::string> wrap(std::string_view text, size_t most);

/// The title and note above a picture, with room for a legend below them.
class Heading {
public:
  /// Breaks lines so that they are at most `width` pixels wide.
  Heading(const std::string &title, const std::string &note, double width);

  double height() const;
  std::string draw() const;

private:
  std::vector<std::string> title, note; ///< lines
};

/// One SVG 1.1 document. `width` and `height` are in pixels.
std::string document(double width, double height, const std::string &body);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGSTYLE_H
