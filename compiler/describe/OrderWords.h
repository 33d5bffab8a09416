//===- OrderWords.h - The words of an order file ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of a line of an order file (OrderFile.h): the worker, and the words
// for actions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_DESCRIBE_ORDERWORDS_H
#define CHIMERA_COMPILER_DESCRIBE_ORDERWORDS_H

#include "compiler/schedule/model/Action.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chimera {

/// The text of an order file with the letters that OrderText.h defines, made
/// from `text`, which has the letters of the zero-bubble papers (Qi et al.,
/// ICLR'24): B is an input gradient, W a weight gradient and BW a whole
/// backward. The result has the same size, and each word begins at the same
/// place.
std::string fromZeroBubbleNotation(std::string_view text);

namespace words {

/// The largest number of workers of an order file. The numbers of stages and
/// micro-batches are below it. With larger numbers there would be more actions
/// than can be compiled.
inline constexpr int32_t kMost = 65535;

/// Removes the blanks before the first word of `text`.
void skipBlanks(std::string_view &text);

/// If `line` begins with a worker, such as "P12:", removes this text from
/// `line` and returns the worker's number.
std::optional<int32_t> takeWorker(std::string_view &line);

/// True if `line` begins with a worker and "=", such as "P1 = F0".
bool hasEquals(std::string_view line);

/// True if `line`, which begins with a word, is a comment.
bool isComment(std::string_view line);

/// True if `word` is an idle slot: "." or, as grids have it, ".3".
bool isIdle(std::string_view word);

/// One action of a line, such as 1F0.
struct ActionWord {
  std::optional<int32_t> stage;
  schedule::Kind kind{};
  int32_t first = 0, last = 0; ///< first and last micro-batch
  std::optional<int32_t> part;
};

/// The action that `text` names. Nothing if `text` does not name an action.
std::optional<ActionWord> actionWordOf(std::string_view text);

/// Calls `visit(action)` for each of joined actions such as F1+B0 or W0+W1+W2,
/// or for `word` itself. Stops and returns false if a call returns false.
template <typename Visit> bool eachAction(std::string_view word, Visit visit) {
  for (size_t plus; (plus = word.find('+')) != word.npos;
       word.remove_prefix(plus + 1))
    if (!visit(word.substr(0, plus)))
      return false;
  return visit(word);
}

/// True if `text` names an action, or joined actions.
bool namesActions(std::string_view text);

} // namespace words
} // namespace chimera

#endif // CHIMERA_COMPILER_DESCRIBE_ORDERWORDS_H
