//===- AnswerJson.h - Answers as JSON ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_ANSWERJSON_H
#define CHIMERA_COMPILER_PLANNER_ANSWERJSON_H

#include "compiler/planner/Planner.h"

namespace chimera {

/// The question, its plans and what became of all others, as a JSON document;
/// tools/README.md says what is in it. Where no plan is possible, it says why.
std::string jsonOf(const plan::Question &question, PlanSubject subject,
                   const PlannedAnswer &planned,
                   const std::vector<std::string> &assumptions);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_ANSWERJSON_H
