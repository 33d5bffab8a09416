//===- OrderWords.cpp - The words of an order file ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/OrderWords.h"

#include <algorithm>
#include <charconv>

namespace chimera {

std::string fromZeroBubbleNotation(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789", kSeparators = " \t\r\n+";
  std::string result(text);
  for (size_t at = 0; at < text.size();) {
    size_t begin = text.find_first_not_of(kSeparators, at);
    if (begin == text.npos)
      break;
    size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    at = end;
    size_t letter = text.find_first_not_of(kDigits, begin); // after the stage
    if (letter >= end || text[letter] != 'B')
      continue;
    if (letter + 1 < end && text[letter + 1] == 'W') {
      // A blank at the end keeps the size.
      result.erase(letter + 1, 1);
      result.insert(end - 1, 1, ' ');
    } else {
      result[letter] = 'I';
    }
  }
  return result;
}

void words::skipBlanks(std::string_view &text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
}

std::optional<int32_t> words::takeWorker(std::string_view &line) {
  if (!line.starts_with('P') && !line.starts_with('p'))
    return std::nullopt;
  int32_t worker = 0;
  auto [end, code] =
      std::from_chars(line.data() + 1, line.data() + line.size(), worker);
  if (code != std::errc())
    return std::nullopt;
  std::string_view rest = line.substr(end - line.data());
  skipBlanks(rest);
  if (!rest.starts_with(':'))
    return std::nullopt;
  line = rest.substr(1);
  return worker;
}

bool words::hasEquals(std::string_view line) {
  std::string head(line.substr(0, line.find('=')));
  head += ':';
  std::string_view rest = head;
  return head.size() <= line.size() && takeWorker(rest) && rest.empty();
}

bool words::isComment(std::string_view line) {
  return line.starts_with('#') || line.starts_with("//");
}

std::optional<words::ActionWord> words::actionWordOf(std::string_view text) {
  const char *at = text.data(), *const end = at + text.size();
  auto number = [&](int32_t &value) {
    auto [stop, code] = std::from_chars(at, end, value);
    if (code != std::errc() || value < 0 || value >= kMost || *at == '-')
      return false;
    at = stop;
    return true;
  };
  ActionWord word;
  if (at != end && *at >= '0' && *at <= '9') {
    word.stage = 0;
    if (!number(*word.stage))
      return std::nullopt;
  }
  std::optional<schedule::Kind> kind;
  if (at != end)
    kind = schedule::kindOf(*at++);
  if (!kind)
    return std::nullopt;
  word.kind = *kind;
  if (at == end || !number(word.first))
    return std::nullopt;
  word.last = word.first;
  if (at != end && *at == '-') {
    ++at;
    if (at == end || !number(word.last) || word.last < word.first)
      return std::nullopt;
  } else if (at != end && *at == '.') {
    ++at;
    word.part = 0;
    if (at == end || !number(*word.part) || *word.part > UINT8_MAX)
      return std::nullopt;
  }
  return at == end ? std::optional(word) : std::nullopt;
}

bool words::namesActions(std::string_view text) {
  return eachAction(text, [](std::string_view action) {
    return actionWordOf(action).has_value();
  });
}

bool words::isIdle(std::string_view word) {
  return word.starts_with('.') &&
         word.find_first_not_of("0123456789", 1) == word.npos;
}

} // namespace chimera
