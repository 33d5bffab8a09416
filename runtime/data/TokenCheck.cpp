//===- TokenCheck.cpp - A check of all tokens before training -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenCheck.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {

/// A parallel search for the first invalid token. Threads take blocks in order.
/// So when one thread has found an invalid token, the others stop after their
/// present block.
class Search {
public:
  Search(const Tokens &tokens, uint64_t limit, uint64_t first, uint64_t end)
      : tokens(tokens), limit(limit), next(first), end(end) {}

  std::optional<uint64_t> run(uint32_t threads) {
    const uint64_t blocks = (end - next + kBlock - 1) / kBlock;
    std::vector<std::thread> others;
    try {
      for (uint64_t i = 1; i < std::min<uint64_t>(threads, blocks); ++i)
        others.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
      // No further thread could be created, so the existing threads do all the
      // work.
    }
    work();
    for (std::thread &other : others)
      other.join();
    if (failure)
      std::rethrow_exception(failure);
    return found == UINT64_MAX ? std::nullopt : std::optional(found.load());
  }

private:
  static constexpr uint64_t kBlock = uint64_t{1} << 20;

  void work() noexcept try {
    while (true) {
      const uint64_t first = next.fetch_add(kBlock);
      // Stop if the block begins after a token that was found: this block and
      // all later blocks need no search.
      if (first >= std::min(end, found.load()))
        return;
      const std::optional<uint64_t> token =
          tokens.findAtLeast(limit, first, std::min(kBlock, end - first));
      if (!token)
        continue;
      uint64_t before = found;
      while (*token < before && !found.compare_exchange_weak(before, *token)) {
      }
    }
  } catch (...) {
    std::lock_guard lock(mutex);
    failure = std::current_exception();
    next = end;
  }

  const Tokens &tokens;
  const uint64_t limit;
  std::atomic<uint64_t> next;
  const uint64_t end;
  std::atomic<uint64_t> found = UINT64_MAX;
  std::mutex mutex;
  std::exception_ptr failure; // guarded by mutex
};

} // namespace

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
  const uint64_t each = tokens.count() / parts, rest = tokens.count() % parts;
  const auto begin = [&](uint64_t i) { return i * each + std::min(i, rest); };
  Search search(tokens, validTokenLimit(tokens, vocabulary), begin(part),
                begin(part + 1));
  const std::optional<uint64_t> token = search.run(threads);
  if (!token)
    return {};
  int64_t value = 0;
  tokens.read(*token, {&value, 1});
  return invalidTokenMessage(tokens, vocabulary, *token, value);
}
