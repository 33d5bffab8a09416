//===- ShallowJson.h - JSON texts that do not nest deeply -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_SHALLOWJSON_H
#define CHIMERA_RUNTIME_STAGE_TORCH_SHALLOWJSON_H

#include <string_view>

namespace chimera::runtime {

/// Whether no value of a JSON text is inside more than `levels` others. To be
/// asked before a text is parsed: copies and texts of a value take stack for
/// each level.
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

#endif // CHIMERA_RUNTIME_STAGE_TORCH_SHALLOWJSON_H
