//===- Spelling.h - Texts and lists in a description ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_SPELLING_H
#define CHIMERA_COMPILER_DESCRIBE_SPELLING_H

#include <string>
#include <string_view>

namespace chimera {

/// `text` escaped for a quoted string of MLIR, without the quotes.
inline std::string escaped(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || c == '"' || c == '\\')
      result += {'\\', kDigits[byte >> 4], kDigits[byte & 15]};
    else
      result += c;
  }
  return result;
}

/// The numbers as a list, such as "[0, 2, 3]".
template <typename Range> std::string listOf(const Range &numbers) {
  std::string text;
  for (auto number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_SPELLING_H
