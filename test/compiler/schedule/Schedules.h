//===- Schedules.h - Problems and schedules to test with --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/Simulate.h"
#include "compiler/schedule/Verify.h"

#include <string>
#include <vector>

namespace chimera::schedule {

/// A scheme laid out for `stages` and `microBatches`, every stage at `cost`.
struct Case {
  const Scheme *scheme;
  Problem problem;
  Schedule schedule;
  SchemeOptions options = {};
};

/// Requires that the scheme exists and can do these sizes.
Case makeCase(const std::string &scheme, int32_t stages, int32_t microBatches,
              StageCost cost = {}, bool splitBackward = false,
              const SchemeOptions &options = {});

/// Options with 2f pipelines and a concatenation.
SchemeOptions choose(int32_t pipelines,
                     Concatenation concatenation = Concatenation::Direct);

/// All values of the option.
inline constexpr Concatenation kConcatenations[] = {
    Concatenation::Direct, Concatenation::Eager, Concatenation::Doubling,
    Concatenation::FineTunedDoubling, Concatenation::Halving};

/// Every choice of options that `scheme` can do with `stages`.
std::vector<SchemeOptions> choices(const Scheme &scheme, int32_t stages);

/// "chimera D=4 N=8 2 direct".
std::string nameOf(const Scheme &scheme, int32_t stages, int32_t microBatches,
                   const SchemeOptions &options);

/// The messages of all violations, a line each.
std::string messages(const std::vector<Violation> &violations);

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_SCHEDULES_H
