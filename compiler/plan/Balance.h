//===- Balance.h - Ranges whose longest takes least -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of layers is cut into ranges, one for each stage. What a layer takes
// depends on its stage: a stage that is recomputed runs forwards again.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_BALANCE_H
#define CHIMERA_COMPILER_PLAN_BALANCE_H

#include <cstdint>
#include <vector>

namespace chimera::plan {

/// What the first i layers take together, for each i from 0 on; never less for
/// more layers.
using Prefix = std::vector<int64_t>;

/// The ends of ranges of layers, none of them empty, one for each of `costs`,
/// whose longest takes least: range k takes what its prefix sums say. Of equal
/// cuts the same one is chosen always. Requires as many layers as ranges at
/// least, of which each prefix has as many, and sums below 2^62.
std::vector<int32_t> balancedCuts(const std::vector<const Prefix *> &costs);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_BALANCE_H
