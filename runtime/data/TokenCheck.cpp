//===- TokenCheck.cpp - A check of all tokens before training -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenCheck.h"

#include "runtime/data/ParallelSearch.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

uint64_t chimera::runtime::validTokenLimit(const Tokens &tokens,
                                           uint64_t vocabulary) {
  return vocabulary > 0 ? std::min(vocabulary, tokens.tokenBound())
                        : tokens.tokenBound();
}

std::string chimera::runtime::invalidTokenMessage(const Tokens &tokens,
                                                  uint64_t vocabulary,
                                                  uint64_t token,
                                                  int64_t value) {
  const auto bound = static_cast<int64_t>(tokens.tokenBound());
  // Only a token of a signed type can be `bound` or more. Such a value
  // represents a negative number.
  const bool isNegative = value >= bound;
  return "expected tokens " +
         (vocabulary > 0
              ? "of the model's vocabulary of " + std::to_string(vocabulary)
              : std::string("that are 0 or more")) +
         ", got " + std::to_string(isNegative ? value - 2 * bound : value) +
         " as " + tokens.describePosition(token);
}

std::string chimera::runtime::checkTokens(const Tokens &tokens,
                                          uint64_t vocabulary, uint32_t threads,
                                          uint32_t part, uint32_t parts) {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  const uint64_t limit = validTokenLimit(tokens, vocabulary);
  const std::optional<uint64_t> token =
      findFirst(partOf(tokens.count(), part, parts, kBlock), threads,
                [&](uint64_t first, uint64_t count) {
                  return tokens.findAtLeast(limit, first, count);
                });
  if (!token)
    return {};
  int64_t value = 0;
  tokens.read(*token, {&value, 1});
  return invalidTokenMessage(tokens, vocabulary, *token, value);
}
