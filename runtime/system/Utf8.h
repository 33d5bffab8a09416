//===- Utf8.h - Cuts text between characters --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_UTF8_H
#define CHIMERA_RUNTIME_SYSTEM_UTF8_H

#include <cstddef>
#include <string_view>

namespace chimera::runtime {

/// The size in bytes of the longest prefix of the UTF-8 `text` that has at most
/// `most` bytes and does not split a character.
inline size_t utf8PrefixSize(std::string_view text, size_t most) {
  if (text.size() <= most)
    return text.size();
  while (most > 0 && (text[most] & 0xc0) == 0x80)
    --most;
  return most;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_UTF8_H
