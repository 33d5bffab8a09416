//===- FinishRank.cpp - From the last step to the result ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/FinishRank.h"

#include "runtime/control/Messages.h"
#include "runtime/train/Gather.h"
#include "runtime/train/HeartbeatSender.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/WeightsDigest.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

/// Runs `work` on another thread. Meanwhile, this thread sends heartbeats.
/// `work` may be empty. Called only at the root.
static void workAsRoot(const TrainingRun &run, HeartbeatSender &heartbeat,
                       const std::function<void()> &work,
                       const OnFailure &fail) {
  if (work)
    heartbeat.runWithHeartbeats(
        [&] {
          if (run.onThread)
            run.onThread();
          work();
        },
        fail);
  heartbeat.sendLast();
}

bool chimera::runtime::gatherAndSaveResult(
    const TrainingRun &run, Control &control, const Interpreter &interpreter,
    const std::optional<Divergence> &loss, double seconds, uint64_t deviceBytes,
    const Profile &profile, const Trace &trace, Status &status,
    const OnFailure &fail) {
  uint32_t root = rootOf(run.program);
  bool isRoot = control.rank() == root;
  barrier(control, run.timeout, "all ranks to end their last step");

  // Compare the clocks now: the last step has just ended, and the root sends no
  // heartbeats yet.
  std::vector<ClockOffset> clocks;
  if (run.traceSteps > 0)
    clocks = gatherClocks(control, root, run.timeout);
  std::optional<HeartbeatSender> heartbeat;
  if (isRoot)
    heartbeat.emplace(control, run.timeout);
  auto sign = [&] {
    if (heartbeat)
      heartbeat->sendIfDue();
  };
  RunResult result;
  result.seconds = seconds;
  result.steps = interpreter.stepsRun();
  result.ranks = gatherValues(
      control, root,
      RankUse{interpreter.instructionsRun(), interpreter.arenaBytes(),
              interpreter.peakStashBytes(), interpreter.peakBytes(),
              interpreter.hostBlocksInSteps(), deviceBytes},
      run.timeout);
  const RunEnd runEnd = agreeOnRunEnd(
      run, control, root, haltsOf(run.program, interpreter), loss, result);
  sign();
  if (run.profile)
    result.profiles = gatherProfiles(control, root, profile, run.timeout);
  sign();
  if (run.traceSteps > 0)
    result.traces = gatherTraces(control, root, trace, clocks, run.timeout);
  for (const ClockOffset &clock : clocks)
    if (!clock.isShared)
      result.clockError = std::max(result.clockError.value_or(0), clock.error);
  sign();
  ReplicaBytes weights;
  if (run.checkReplicas || run.digestWeights || runEnd.gathersWeights)
    weights = interpreter.weights();
  // If updates halted, the replicas may differ: the updates of tied parameters
  // may have halted in only one of the two stages. So do not compare replicas
  // in this case.
  if (run.checkReplicas && !runEnd.hasDiverged)
    checkReplicas(run.program, control, root, weights, run.timeout);
  sign();
  if (run.digestWeights)
    result.digest =
        gatherDigest(run.program, control, root, weights, run.timeout);
  sign();
  if (runEnd.gathersWeights)
    result.weights =
        gatherStages(run.program, control, root, weights, run.timeout, sign);
  weights.clear();
  if (run.gatherGradients)
    result.gradients = gatherStages(run.program, control, root,
                                    interpreter.gradients(), run.timeout, sign);
  if (isRoot) {
    status.enter(Status::Saving);
    workAsRoot(run, *heartbeat,
               run.onResult ? [&] { run.onResult(result); }
                            : std::function<void()>(),
               fail);
  } else {
    awaitLastHeartbeat(control, root, run.timeout);
  }
  if (runEnd.stoppedBy != 0 && !runEnd.endedRegularly && run.onStopped)
    run.onStopped(runEnd.stoppedBy);
  return runEnd.endedRegularly;
}

void chimera::runtime::endRank(const TrainingRun &run, Control &control,
                               Status &status, const OnFailure &fail) {
  const uint32_t root = rootOf(run.program);
  if (control.rank() == root) {
    status.enter(Status::Saving);
    HeartbeatSender heartbeat(control, run.timeout);
    workAsRoot(run, heartbeat, run.onEnd, fail);
  } else {
    status.enter(Status::Finishing);
    awaitLastHeartbeat(control, root, run.timeout);
  }
  status.enter(Status::Done);
}
