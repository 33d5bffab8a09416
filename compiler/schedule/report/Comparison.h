//===- Comparison.h - Reports side by side ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_COMPARISON_H
#define CHIMERA_COMPILER_SCHEDULE_COMPARISON_H

#include "compiler/schedule/report/Report.h"

namespace chimera::schedule {

/// A line for each report, from the one that takes least time for a sample to
/// the one that takes most: sizes, what a step takes and what of it, bubble,
/// activations and bytes of the worker that holds most. A table for durations,
/// and one for each other unit.
std::string renderComparison(std::span<const Report> reports);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_COMPARISON_H
