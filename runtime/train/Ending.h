//===- Ending.h - Why a run's steps ended --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_ENDING_H
#define CHIMERA_RUNTIME_TRAIN_ENDING_H

#include "runtime/control/Control.h"
#include "runtime/train/Run.h"

namespace chimera::runtime {

/// Of a step that has ended: whether the run has to stop because its loss is
/// not finite. Notes the first such step in `first`.
bool mustStop(const TrainingRun &run, uint64_t step,
              const std::optional<Loss> &loss,
              std::optional<Divergence> &first);

/// What one rank knows of the end. For each stage the step in which its updates
/// halted; of stages that it does not hold, none.
using Halts = std::vector<std::optional<uint64_t>>;
Halts haltsOf(const program::ProgramT &program, const Interpreter &interpreter);

/// Writes to `result`, whose number of steps is known, why they ended.
/// `signal` asked for it (Signals::asked), or is 0.
void explainEnd(const TrainingRun &run, int signal,
                const std::optional<Divergence> &loss, const Halts &halts,
                RunResult &result);

/// What all ranks are told of the end.
struct Ending {
  int32_t stoppedBy = 0; ///< as in RunResult
  bool isWhole = true;
  bool hasDiverged = false;
};

/// Every rank calls this after its last step. The root's `result` is explained,
/// by what all ranks know; `loss` is what the root has noted.
Ending agreeOnEnd(const TrainingRun &run, Control &control, uint32_t root,
                  const Halts &own, const std::optional<Divergence> &loss,
                  RunResult &result);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_ENDING_H
