//===- Questions.h - Questions for tests of the planner ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_PLANNER_SEARCH_QUESTIONS_H
#define CHIMERA_TEST_COMPILER_PLANNER_SEARCH_QUESTIONS_H

#include "compiler/planner/search/Search.h"
#include "test/compiler/cost/Models.h"

namespace chimera::plan {

inline Question someQuestion(int32_t devices, int64_t memory, int64_t batch,
                             uint32_t seed = 1) {
  return {cost::someModel(2 * devices + 3, seed),
          cost::someMachine(devices, memory),
          batch,
          {}};
}

} // namespace chimera::plan

#endif // CHIMERA_TEST_COMPILER_PLANNER_SEARCH_QUESTIONS_H
