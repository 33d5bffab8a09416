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
/// Distance between the lines of a note.
inline constexpr double kNoteLine = 15;
inline constexpr double kAxis = 44;
inline constexpr double kRow = 26, kBox = 22;
/// The least width of a picture without its margins. Every name of a legend
/// fits into this width.
inline constexpr double kLeastWidth = 320;
/// Average width of a character in notes, for the widest font that a viewer may
/// use. No character is wider than twice this width.
inline constexpr double kNoteCharacter = 6.2;
/// Widths of a digit, each with the CSS class of its font size.
inline constexpr std::array<std::pair<double, const char *>, 2> kDigits = {
    {{6.7, "n"}, {4.6, "s"}}};

/// One line of text. `style` is its CSS class.
std::string text(const char *style, double x, double y,
                 const std::string &content);

/// `drawn` with a tooltip.
std::string withTooltip(const std::string &tooltip, const std::string &drawn);

/// `text` in lines of at most `most` characters, broken at blanks. A word
/// longer than half a line is cut into pieces of at most half a line, because
/// its characters may be twice as wide as the average.
std::vector<std::string> wrap(std::string_view text, size_t most);

/// One SVG 1.1 document. `width` and `height` are in pixels, `rules` are the
/// CSS rules of the colours (Palette).
std::string document(double width, double height, const std::string &rules,
                     const std::string &body);

} // namespace chimera::schedule::svg

#endif // CHIMERA_COMPILER_SCHEDULE_SVGSTYLE_H
