//===- Action.cpp - A computation on one stage ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Action.h"

#include <algorithm>

namespace chimera::schedule {

std::string wordsOf(Kind kind) {
  std::string words = nameOf(kind);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string labelOf(const Action &action, bool namesPipeline) {
  std::string text;
  if (namesPipeline)
    text = "pipeline " + std::to_string(action.pipeline) + ", ";
  text += "stage " + std::to_string(action.stage) + ", micro-batch";
  if (action.microBatches != 1)
    return text + "es " + std::to_string(action.microBatch) + " to " +
           std::to_string(action.microBatch + action.microBatches - 1);
  text += " " + std::to_string(action.microBatch);
  if (action.parts != 1)
    text += ", part " + std::to_string(action.part) + " of " +
            std::to_string(action.parts);
  return text;
}

std::string describe(const Action &action, bool namesPipeline) {
  return std::string(nameOf(action.kind)) + " of " +
         labelOf(action, namesPipeline);
}

} // namespace chimera::schedule
