//===- ParallelSearch.cpp - The first number that has a property ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ParallelSearch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

namespace {

using Find = std::function<std::optional<uint64_t>(uint64_t, uint64_t)>;

/// Threads take blocks in order. So when one thread has found a number, the
/// others stop after their present block.
class Search {
public:
  Search(const Find &find, SearchRange range)
      : find(find), next(range.first), end(range.end), block(range.block) {}

  std::optional<uint64_t> run(uint32_t threads) {
    const uint64_t blocks = (end - next + block - 1) / block;
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
  void work() noexcept try {
    while (true) {
      const uint64_t first = next.fetch_add(block);
      // Stop if the block begins after a number that was found: this block and
      // all later blocks need no search.
      if (first >= std::min(end, found.load()))
        return;
      const std::optional<uint64_t> number =
          find(first, std::min(block, end - first));
      if (!number)
        continue;
      uint64_t before = found;
      while (*number < before &&
             !found.compare_exchange_weak(before, *number)) {
      }
    }
  } catch (...) {
    std::lock_guard lock(mutex);
    failure = std::current_exception();
    next = end;
  }

  const Find &find;
  std::atomic<uint64_t> next;
  const uint64_t end, block;
  std::atomic<uint64_t> found = UINT64_MAX;
  std::mutex mutex;
  std::exception_ptr failure; // guarded by mutex
};

} // namespace

std::optional<uint64_t> chimera::runtime::findFirst(SearchRange range,
                                                    uint32_t threads,
                                                    const Find &find) {
  return Search(find, range).run(threads);
}

SearchRange chimera::runtime::partOf(uint64_t count, uint32_t part,
                                     uint32_t parts, uint64_t block) {
  const uint64_t each = count / parts, rest = count % parts;
  const auto begin = [&](uint64_t i) { return i * each + std::min(i, rest); };
  return {begin(part), begin(uint64_t{part} + 1), block};
}
