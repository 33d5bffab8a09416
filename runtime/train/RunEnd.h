//===- RunEnd.h - Why a run's steps ended -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNEND_H
#define CHIMERA_RUNTIME_TRAIN_RUNEND_H

#include "runtime/control/Control.h"
#include "runtime/train/Run.h"

namespace chimera::runtime {

/// Whether the run must stop because the loss of this step, which has ended, is
/// not finite. Notes the first such step in `first`.
bool mustStopForLoss(const TrainingRun &run, uint64_t step,
                     const std::optional<Loss> &loss,
                     std::optional<Divergence> &first);

/// For each stage: the step in which its updates halted on this rank. None for
/// stages that the rank does not have.
using Halts = std::vector<std::optional<uint64_t>>;
Halts haltsOf(const program::ProgramT &program, const Interpreter &interpreter);

/// Writes the reason for the end of the steps to `result`, whose number of
/// steps must be set. `signal` is the signal that asked for the end
/// (Signals::asked), or 0.
void setStopReason(const TrainingRun &run, int signal,
                   const std::optional<Divergence> &loss, const Halts &halts,
                   RunResult &result);

/// The information about the end of the steps that all ranks get.
struct RunEnd {
  int32_t stoppedBy = 0; ///< as in RunResult
  bool endedRegularly = true;
  bool hasDiverged = false;
};

/// Agrees on the reason for the end. Every rank must call this after its last
/// step. The root's `result` gets the reason, based on the information of all
/// ranks. `loss` is the root's first loss that was not finite.
RunEnd agreeOnRunEnd(const TrainingRun &run, Control &control, uint32_t root,
                     const Halts &own, const std::optional<Divergence> &loss,
                     RunResult &result);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNEND_H
