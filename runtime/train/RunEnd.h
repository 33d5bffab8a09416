//===- RunEnd.h - Why a run's steps ended -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_RUNEND_H
#define CHIMERA_RUNTIME_TRAIN_RUNEND_H

#include "runtime/control/Control.h"
#include "runtime/train/TrainingRun.h"

namespace chimera::runtime {

/// Watches the losses and gradient norms of a run at the root.
class LossWatch {
public:
  explicit LossWatch(const TrainingRun &run) : run(run) {}

  /// Whether the run must stop because it keeps weights finite (run.keepFinite)
  /// and the loss of this step is not finite. If the norm of the gradients is
  /// not finite either, the step was left out, and the run goes on until it has
  /// left out more than run.skipNonFinite steps.
  bool mustStop(uint64_t step, const std::optional<Loss> &loss);

  /// The step for which the run must stop.
  const std::optional<Divergence> &divergence() const { return first; }

private:
  const TrainingRun &run;
  std::optional<Divergence> first;
  uint64_t skipped = 0;
};

/// For each stage: the step in which its updates halted on this rank. None for
/// stages that the rank does not have.
using Halts = std::vector<std::optional<uint64_t>>;
Halts haltsOf(const program::ProgramT &program, const Interpreter &interpreter);

/// Writes the reason for the end of the steps to `result`, whose number of
/// steps must be set. `signal` is the signal that asked for the end
/// (Signals::stopSignal), or 0.
void setStopReason(const TrainingRun &run, int signal,
                   const std::optional<Divergence> &loss, const Halts &halts,
                   RunResult &result);

/// The reason for the end of the steps, as the root sends it to all ranks.
struct RunEnd {
  int32_t stoppedBy = 0; ///< as in RunResult
  bool endedRegularly = true;
  bool hasDiverged = false;
  bool gathersWeights = false; ///< gathersWeightsAtEnd
};

/// Collects information about the end of the steps from all ranks, and gives
/// all ranks the same reason. Every rank must call this after its last step. At
/// the root, stores the reason in `result`. `loss` is the root's first loss
/// that was not finite.
RunEnd agreeOnRunEnd(const TrainingRun &run, Control &control, uint32_t root,
                     const Halts &own, const std::optional<Divergence> &loss,
                     RunResult &result);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_RUNEND_H
