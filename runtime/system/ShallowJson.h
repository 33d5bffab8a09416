//===- ShallowJson.h - A limit on the nesting of JSON -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_SHALLOWJSON_H
#define CHIMERA_RUNTIME_SYSTEM_SHALLOWJSON_H

#include <string_view>

namespace chimera::runtime {

/// Whether the nesting depth of a JSON text is at most `levels`. Call this
/// before a text is parsed: to copy or print the parsed value, the library
/// needs stack space for each level.
inline bool isShallow(std::string_view text, int levels) {
  int depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size() && depth <= levels; ++i) {
    if (text[i] == '"')
      isString = !isString;
    else if (isString)
      i += text[i] == '\\';
    else if (text[i] == '[' || text[i] == '{')
      ++depth;
    else if (text[i] == ']' || text[i] == '}')
      --depth;
  }
  return depth <= levels;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_SHALLOWJSON_H
