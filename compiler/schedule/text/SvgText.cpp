//===- SvgText.cpp - Text in SVG ------------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/text/SvgText.h"

#include <charconv>

namespace chimera::schedule {

std::string svgNumber(double value) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, value,
                                    std::chars_format::fixed, 2);
  std::string digits(text, end);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.')
    digits.pop_back();
  return digits;
}

std::string escapeXml(const std::string &text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return escaped;
}

} // namespace chimera::schedule
