//===- Printable.cpp - Texts that are safe to print -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Printable.h"

#include <cstdint>

namespace chimera::program {

namespace {

/// The length in bytes of the first character of `text`. 0 if it is not a
/// printable character in UTF-8. Requires a text that is not empty.
size_t shownLength(std::string_view text) {
  auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  uint8_t first = byte(0);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length)
    return 0;
  uint32_t code = first & (0x7f >> length);
  for (size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (byte(k) & 0x3f);
  }
  bool isTooLong = (length == 3 && code < 0x800) ||
                   (length == 4 && (code < 0x10000 || code > 0x10ffff));
  bool isSurrogate = code >= 0xd800 && code < 0xe000;
  bool isControl = code < 0xa0 || code == 0x2028 || code == 0x2029;
  bool turnsDirection = code == 0x61c || code == 0x200e || code == 0x200f ||
                        (code >= 0x202a && code <= 0x202e) ||
                        (code >= 0x2066 && code <= 0x2069);
  return isTooLong || isSurrogate || isControl || turnsDirection ? 0 : length;
}

} // namespace

bool isPrintable(std::string_view text) {
  while (!text.empty()) {
    size_t length = shownLength(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    size_t length = shownLength(text);
    if (length == 0) {
      auto byte = static_cast<uint8_t>(text[0]);
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      length = 1;
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

} // namespace chimera::program
