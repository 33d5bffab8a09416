//===- SyntheticStage.h - Stages that only take time ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_SYNTHETICSTAGE_H
#define CHIMERA_RUNTIME_STAGE_SYNTHETICSTAGE_H

#include "runtime/stage/Stage.h"

namespace chimera::runtime {

/// Stages of any program that sleep for each action's cost times
/// `nanosecondsPerUnit` and touch no bytes but the loss, which is 0; weights
/// start as zeros. With 0 nanoseconds they do nothing, and what remains is the
/// runtime's own cost. The optimizer step takes no time. Sleeps end up to some
/// 50 µs late.
StageFactory makeSyntheticStages(double nanosecondsPerUnit);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_SYNTHETICSTAGE_H
