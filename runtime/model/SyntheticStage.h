//===- SyntheticStage.h - Stages that only sleep ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_SYNTHETICSTAGE_H
#define CHIMERA_RUNTIME_MODEL_SYNTHETICSTAGE_H

#include "runtime/model/Stage.h"

namespace chimera::runtime {

/// Makes stages of any program that sleep for each action's cost times
/// `nanosecondsPerUnit`. The only value that these stages write is zero. They
/// write initial weights and optimizer state, losses, and gradient sums that
/// they must overwrite (WgradMode::Overwrite). With 0 nanoseconds per unit, the
/// stages never sleep, so the time of a run is the runtime's overhead. A sleep
/// ends up to about 50 µs late.
StageFactory makeSyntheticStages(double nanosecondsPerUnit);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_SYNTHETICSTAGE_H
