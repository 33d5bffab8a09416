//===- SvgStyle.cpp - Styles and text of pictures -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgStyle.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"

#include <algorithm>

namespace chimera::schedule::svg {

namespace {

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

std::string styleSheet(const std::string &rules) {
  return "<style>\n"
         "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;"
         "font-size:11px;fill:#2d3748}\n"
         ".title{font-size:15px;font-weight:bold}\n"
         ".worker,.figure{text-anchor:end}\n"
         ".worker{font-weight:bold}\n"
         ".figure,.axis{fill:#4a5568}\n"
         ".axis,.n,.s{text-anchor:middle}\n"
         ".n,.s{fill:#fff}\n"
         ".s{font-size:8px}\n"
         ".p{fill:#000}\n"
         ".mark{stroke:#a0aec0;stroke-width:.6}\n"
         ".bubble{fill:url(#bubble)}\n"
         ".body,.update{fill:#1a202c}\n"
         ".message{fill:#4a5568}\n"
         ".all-reduce{fill:#b83280}\n"
         ".wait{fill:#f6c6de}\n" +
         rules +
         "</style>\n<defs><pattern id=\"bubble\" width=\"6\" height=\"6\" "
         "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
         "<rect width=\"6\" height=\"6\" fill=\"#edf2f7\"/>"
         "<path d=\"M0 0V6\" stroke=\"#cbd5e0\" stroke-width=\"1.6\"/>"
         "</pattern></defs>\n";
}

} // namespace

std::string text(const char *style, double x, double y,
                 const std::string &content) {
  return std::string("<text class=\"") + style + "\" x=\"" + svgNumber(x) +
         "\" y=\"" + svgNumber(y) + "\">" + escapeXml(content) + "</text>\n";
}

std::string withTooltip(const std::string &tooltip, const std::string &drawn) {
  return "<g><title>" + escapeXml(tooltip) + "</title>" + drawn + "</g>\n";
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

std::string document(double width, double height, const std::string &rules,
                     const std::string &body) {
  std::string size = svgNumber(width) + "\" height=\"" + svgNumber(height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"" +
         size + "\" viewBox=\"0 0 " + svgNumber(width) + " " +
         svgNumber(height) + "\">\n" + styleSheet(rules) + "<rect width=\"" +
         size + "\" fill=\"#fff\"/>\n" + body + "</svg>\n";
}

} // namespace chimera::schedule::svg
