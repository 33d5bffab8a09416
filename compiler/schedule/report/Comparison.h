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

/// One line for each report, sorted by time per sample, fastest first. A line
/// has the sizes, the step time and its parts, idle share, and the activations
/// and bytes of the worker with the most. Reports in durations share one table;
/// each other time unit has its own.
std::string renderComparison(std::span<const Report> reports);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_COMPARISON_H
