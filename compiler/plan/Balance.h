//===- Balance.h - Ranges whose longest is shortest -------------*- C++ -*-===//
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

#ifndef CHIMERA_COMPILER_PLAN_BALANCE_H
#define CHIMERA_COMPILER_PLAN_BALANCE_H

#include <cstdint>
#include <vector>

namespace chimera::plan {

/// Sums of times: entry i is the time of the first i layers. Never decreases.
using PrefixSums = std::vector<int64_t>;

/// The ends of non-empty ranges of layers, one for each entry of `costs`, such
/// that the longest time of a range is minimal. The time of range k follows
/// from the prefix sums `costs[k]`. Equal inputs give equal cuts. Requires at
/// least as many layers as ranges, the same number of layers in each prefix,
/// and sums below 2^62.
std::vector<int32_t> balancedCuts(const std::vector<const PrefixSums *> &costs);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_BALANCE_H
