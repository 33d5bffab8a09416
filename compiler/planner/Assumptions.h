//===- Assumptions.h - What a plan assumes ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A description leaves out what a person does not know or care about. A plan
// then rests on an assumption, which the person may not have meant.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H
#define CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H

#include "compiler/planner/PlanDescription.h"

namespace chimera {

/// A line for each matter on which the subject's ops and the profiles of
/// `machine`, which is the subject's, say nothing: which value holds, and what
/// does not say it. Also what they say in vain.
std::vector<std::string> assumptionsOf(PlanSubject subject,
                                       const plan::Machine &machine);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H
