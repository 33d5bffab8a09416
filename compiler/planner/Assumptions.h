//===- Assumptions.h - Assumptions of a plan --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A description may omit values that the user does not know or care about. A
// plan then depends on assumptions that the user may not have intended.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H
#define CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H

#include "compiler/planner/PlanDescription.h"

namespace chimera {

/// One line for each value that is stated neither by `ops` nor by the profiles
/// of `machine`. The line has the assumed value, and the clause or option that
/// is missing. There are also lines for values that are stated but not used.
/// Requires that `machine` is the machine of `ops`.
std::vector<std::string> assumptionsOf(PlannerOps ops,
                                       const cost::Machine &machine);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_ASSUMPTIONS_H
