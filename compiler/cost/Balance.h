//===- Balance.h - Layers cut into balanced ranges --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of layers is cut into ranges, one for each stage, so that the longest
// range takes the least time. The time of a layer depends on its stage: a
// recomputed stage runs its forwards again.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_BALANCE_H
#define CHIMERA_COMPILER_COST_BALANCE_H

#include <cstdint>
#include <vector>

namespace chimera::cost {

/// Entry i is the time of the first i layers. The entries never decrease.
using PrefixSums = std::vector<int64_t>;

/// Cuts the layers into one non-empty range for each entry of `costs`, so that
/// the longest range takes the least time. Returns the ends of the ranges.
/// Entry `costs[k]` has the prefix sums of the layers' times in range k. Equal
/// inputs give equal cuts. Requires at least as many layers as ranges, the same
/// number of layers in each entry, and sums below 2^62.
std::vector<int32_t> balancedCuts(const std::vector<const PrefixSums *> &costs);

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_BALANCE_H
