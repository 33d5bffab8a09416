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

/// The question, its plans and the outcomes of all other choices, as a JSON
/// document (format: tools/README.md). If no plan is possible, the document has
/// the reason.
std::string jsonOf(const plan::Question &question, PlannerOps ops,
                   const PlannerResult &result,
                   const std::vector<std::string> &assumptions);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_ANSWERJSON_H
