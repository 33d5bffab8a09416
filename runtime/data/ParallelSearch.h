//===- ParallelSearch.h - The first number that has a property --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_PARALLELSEARCH_H
#define CHIMERA_RUNTIME_DATA_PARALLELSEARCH_H

#include <cstdint>
#include <functional>
#include <optional>

namespace chimera::runtime {

/// A range of numbers that threads search in blocks of `block` numbers.
struct SearchRange {
  uint64_t first, end, block;
};

/// Returns the first number of the range that `find` finds. `find(first,
/// count)` must return the first number with the property in [first, first +
/// count), or none. Calls it for blocks of the range, on up to `threads`
/// threads. Throws what `find` throws.
std::optional<uint64_t> findFirst(
    SearchRange range, uint32_t threads,
    const std::function<std::optional<uint64_t>(uint64_t, uint64_t)> &find);

/// Part `part` of `parts` parts of the numbers below `count`, which are equal
/// up to one number.
SearchRange partOf(uint64_t count, uint32_t part, uint32_t parts,
                   uint64_t block);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_PARALLELSEARCH_H
