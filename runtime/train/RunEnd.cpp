//===- RunEnd.cpp - Why a run's steps ended -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunEnd.h"

#include "runtime/control/Messages.h"

#include <algorithm>
#include <cmath>

using namespace chimera;
using namespace chimera::runtime;

bool LossWatch::mustStop(uint64_t step, const std::optional<Loss> &loss) {
  if (!run.keepFinite || !loss)
    return false;
  const bool isSkipped = run.skipNonFinite > 0 && loss->gradientNorm &&
                         !std::isfinite(*loss->gradientNorm);
  if (isSkipped ? skipped++ < run.skipNonFinite : std::isfinite(loss->mean))
    return false;
  if (!first)
    first = Divergence{.step = step,
                       .loss = std::isfinite(loss->mean)
                                   ? std::nullopt
                                   : std::optional(loss->mean),
                       .stages = {},
                       .skipped = isSkipped ? skipped - 1 : skipped};
  return true;
}

Halts chimera::runtime::haltsOf(const program::ProgramT &program,
                                const Interpreter &interpreter) {
  Halts halts(program.stages.size());
  for (const auto &[key, step] : interpreter.halted())
    halts[key.second] = std::min(halts[key.second].value_or(step), step);
  return halts;
}

void chimera::runtime::setStopReason(const TrainingRun &run, int signal,
                                     const std::optional<Divergence> &loss,
                                     const Halts &halts, RunResult &result) {
  if (result.steps < run.steps)
    result.stoppedBy = signal;
  result.divergence = loss;
  for (uint32_t stage = 0; stage < halts.size(); ++stage) {
    result.weightsAfter.push_back(halts[stage].value_or(result.steps));
    if (!halts[stage])
      continue;
    std::optional<Divergence> &first = result.divergence;
    if (!first || *halts[stage] < first->step)
      first = Divergence{.step = *halts[stage], .loss = {}, .stages = {}};
    if (!first->loss && *halts[stage] == first->step)
      first->stages.push_back(stage);
  }
}

/// The strength of a signal. If ranks got different signals, the strongest one
/// is the reason for the end. Signals that end the run are stronger than
/// SIGUSR1, which only asks for results.
static int strengthOf(int signal) {
  return signal == 0 ? 0 : signal == SIGUSR1 ? 1 : 2;
}

RunEnd chimera::runtime::agreeOnRunEnd(const TrainingRun &run, Control &control,
                                       uint32_t root, const Halts &own,
                                       const std::optional<Divergence> &loss,
                                       RunResult &result) {
  int signal = run.signals ? run.signals->stopSignal() : 0;
  for (int other : gatherValues(control, root, signal, run.timeout))
    if (strengthOf(other) > strengthOf(signal))
      signal = other;
  constexpr uint64_t kNone = UINT64_MAX;
  std::vector<uint64_t> steps;
  for (const std::optional<uint64_t> &step : own)
    steps.push_back(step.value_or(kNone));
  if (control.rank() != root) {
    sendLarge(control, root, std::as_bytes(std::span(steps)), run.timeout);
    return broadcastValue(control, root, RunEnd{}, run.timeout);
  }
  std::vector<uint64_t> others(steps.size());
  for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
    if (rank == root)
      continue;
    receiveLarge(control, rank, std::as_writable_bytes(std::span(others)),
                 run.timeout);
    for (size_t stage = 0; stage < steps.size(); ++stage)
      steps[stage] = std::min(steps[stage], others[stage]);
  }
  Halts halts;
  for (uint64_t step : steps)
    halts.push_back(step == kNone ? std::nullopt : std::optional(step));
  setStopReason(run, signal, loss, halts, result);
  const RunEnd runEnd{.stoppedBy = result.stoppedBy,
                      .endedRegularly = result.endedRegularly(),
                      .hasDiverged = result.divergence.has_value(),
                      .gathersWeights = gathersWeightsAtEnd(run, result)};
  return broadcastValue(control, root, runEnd, run.timeout);
}
