//===- Scheme.cpp - A family of schedules ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Scheme.h"

namespace chimera::schedule {

template <typename Formula>
static const Formula *find(std::span<const Formula> formulas,
                           const Sizes &sizes) {
  for (const Formula &formula : formulas)
    if (formula.isSplit == sizes.isSplit && formula.holds(sizes))
      return &formula;
  return nullptr;
}

const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes) {
  return find(scheme.bubbleFormulas, sizes);
}

const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes) {
  return sizes.recomputed ? nullptr : find(scheme.peakFormulas, sizes);
}

} // namespace chimera::schedule
