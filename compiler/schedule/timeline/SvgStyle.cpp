//===- SvgStyle.cpp - Styles and text of pictures -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgStyle.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/SvgText.h"

#include <algorithm>

namespace chimera::schedule::svg {

namespace {

/// The style of a kind of actions, indexed by `Kind`.
struct Style {
  const char *name, *dark, *pale;
};
constexpr std::array<Style, 5> kStyles = {{
    {"forward", "#2b6cb0", "#bcd9f5"},
    {"backward", "#c05621", "#fbd5b5"},
    {"input gradient", "#b7791f", "#fbe8ad"},
    {"weight gradient", "#2f855a", "#bfe6cd"},
    {"recompute", "#6b46c1", "#ddd0f7"},
}};

const Style &styleOf(size_t kind) {
  return kStyles[std::min(kind, kStyles.size() - 1)];
}

/// Removes the first `most` characters (of UTF-8) from `text` and returns them.
std::string takeCharacters(std::string &text, size_t most) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && most-- == 0)
      break;
  std::string taken = text.substr(0, end);
  text.erase(0, end);
  return taken;
}

std::string styleSheet() {
  std::string css =
      "<style>\n"
      "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;"
      "font-size:11px;fill:#2d3748}\n"
      ".title{font-size:15px;font-weight:bold}\n"
      ".worker,.figure{text-anchor:end}\n"
      ".worker{font-weight:bold}\n"
      ".figure,.axis{fill:#4a5568}\n"
      ".axis,.n,.s{text-anchor:middle}\n"
      ".n,.s{fill:#fff}\n"
      ".s{font-size:8px}\n"
      ".p{fill:#1a202c}\n"
      ".u{stroke-width:.8}\n"
      ".mark{stroke:#a0aec0;stroke-width:.6}\n"
      ".bubble{fill:url(#bubble)}\n"
      ".body,.update{fill:#1a202c}\n"
      ".message{fill:#4a5568}\n"
      ".all-reduce{fill:#b83280}\n"
      ".wait{fill:#f6c6de}\n";
  for (size_t k = 0; k < kStyles.size(); ++k) {
    std::string name = ".k" + std::to_string(k);
    css += name + ".d{fill:" + kStyles[k].dark + "}\n" + name +
           ".u{fill:" + kStyles[k].pale + ";stroke:" + kStyles[k].dark + "}\n";
  }
  return css +
         "</style>\n<defs><pattern id=\"bubble\" width=\"6\" height=\"6\" "
         "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
         "<rect width=\"6\" height=\"6\" fill=\"#edf2f7\"/>"
         "<path d=\"M0 0V6\" stroke=\"#cbd5e0\" stroke-width=\"1.6\"/>"
         "</pattern></defs>\n";
}

} // namespace

const char *nameOfKind(size_t kind) { return styleOf(kind).name; }

std::string classOf(size_t kind, bool up) {
  return std::string("k") + std::to_string(kind) + (up ? " u" : " d");
}

std::string text(const char *style, double x, double y,
                 const std::string &content) {
  return std::string("<text class=\"") + style + "\" x=\"" + svgNumber(x) +
         "\" y=\"" + svgNumber(y) + "\">" + escapeXml(content) + "</text>\n";
}

std::vector<std::string> wrap(std::string_view text, size_t most) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t used = characterCount(lines.back());
    if (used > 0 && characterCount(word) <= most / 2 &&
        used + 1 + characterCount(word) <= most) {
      lines.back() += " " + word;
      continue;
    }
    if (used > 0)
      lines.emplace_back();
    while (characterCount(word) > most / 2) {
      lines.back() = takeCharacters(word, most / 2);
      lines.emplace_back();
    }
    lines.back() = std::move(word);
  }
  return lines;
}

Heading::Heading(const std::string &title, const std::string &note,
                 double width)
    : title(wrap(title, static_cast<size_t>(width / kTitleCharacter))),
      note(wrap(note, static_cast<size_t>(width / kNoteCharacter))) {}

double Heading::height() const {
  constexpr double kHeight = 84; // title, note and legend, one line each
  return kHeight + kTitleLine * static_cast<double>(title.size() - 1) +
         kNoteLine * static_cast<double>(note.size() - 1);
}

std::string Heading::draw() const {
  std::string svg;
  double y = 14;
  for (const std::string &line : title) {
    svg += text("title", 0, y, line);
    y += kTitleLine;
  }
  for (const std::string &line : note) {
    svg += text("note", 0, y, line);
    y += kNoteLine;
  }
  return svg;
}

std::string document(double width, double height, const std::string &body) {
  std::string size = svgNumber(width) + "\" height=\"" + svgNumber(height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"" +
         size + "\" viewBox=\"0 0 " + svgNumber(width) + " " +
         svgNumber(height) + "\">\n" + styleSheet() + "<rect width=\"" + size +
         "\" fill=\"#fff\"/>\n" + body + "</svg>\n";
}

} // namespace chimera::schedule::svg
