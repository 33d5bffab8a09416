//===- Unroll.h - The two ways to unroll a step -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_UNROLL_H
#define CHIMERA_PASSES_SCHEDULE_UNROLL_H

#include "passes/describe/Bridge.h"

namespace chimera {

class StepBuilder;

/// Makes the step of a schedule with a flush. If the problem clips, each update
/// needs the norm of the gradients of all stages. With `tied`, the gradient of
/// the parameters that first and last stage share is reduced over the replicas
/// of both.
void unrollStep(StepBuilder &build, const Layout &layout,
                const schedule::Problem &problem,
                std::optional<program::Tied> tied);

/// Makes the prologue, step and epilogue of a schedule without a flush.
void unrollSections(StepBuilder &build, const schedule::Problem &problem);

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_UNROLL_H
