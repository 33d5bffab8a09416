//===- RunSequential.cpp - A run without a pipeline -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunSequential.h"

#include "runtime/control/InProcess.h"
#include "runtime/model/LearningRate.h"
#include "runtime/program/Layers.h"
#include "runtime/train/Capacity.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/HeartbeatSender.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/Sequential.h"
#include "runtime/train/UseMeter.h"
#include "runtime/train/WeightsDigest.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

#include <algorithm>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

void chimera::runtime::runSequential(TrainingRun run, const HostOptions &use,
                                     uint32_t stages) {
  const HostResources share{
      1, shareCores(findCores(), 1, use.threads, ProgressMode::Off)};
  if (use.setThreads)
    run.onThread = [&] { use.setThreads(share.threads.computing); };
  std::atomic<uint64_t> stepsDone = run.firstStep;
  std::atomic<bool> stop = false, save = false;
  StatusPage page(1);
  enum Phase { Training, Saving, Evaluating };
  std::atomic<Phase> phase = Training;
  SignalListener listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      return stop.store(true);
    if (signal == SIGUSR2)
      return handleSaveSignal(run, page, [&] { save.store(true); });
    const Phase now = phase.load();
    writeReport(kEndedBy + signalName(signal) +
                (now == Saving ? " while saving\n"
                 : now == Evaluating
                     ? " while evaluating\n"
                     : " in step " + std::to_string(stepsDone.load() + 1) +
                           run.signals->unsavedText() + "\n" + kHowToStop +
                           "\n"));
    endProcess(128 + signal);
  });
  if (run.onThread)
    run.onThread();
  checkSequentialCapacity(run.program, stages, run.checkpoints.has_value());
  std::vector<std::unique_ptr<Stage>> made;
  for (uint32_t stage = 0; stage < stages; ++stage)
    made.push_back(run.stages(run.program, stage));
  if (use.onReady)
    use.onReady(share);
  int64_t begin = steadyNanoseconds();
  auto seconds = [&] {
    return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
  };
  // Use the heartbeats of a run with one rank. Work that hangs is then
  // reported, and no heartbeat is sent, since there is no other rank.
  auto work = [&](const std::function<void()> &action) {
    std::vector<std::unique_ptr<Control>> alone = makeInProcessControls(1);
    HeartbeatSender heartbeat(*alone[0], run.timeout);
    phase.store(Saving);
    heartbeat.runWithHeartbeats(
        [&] {
          if (run.onThread)
            run.onThread();
          action();
        },
        [](const std::string &reason) {
          writeReport(reason + "\n");
          endProcess(1);
        });
    phase.store(Evaluating);
  };
  std::optional<CheckpointWriter> writer;
  if (run.checkpoints) {
    std::vector<CheckpointPart> parts = stageParts(run.program);
    if (stages == 1)
      parts = {{.number = 0,
                .first = 0,
                .layers = program::layerCount(*run.program.model)}};
    writer.emplace(run.program, *run.checkpoints->names, parts,
                   writerOptions(run, parts.size(),
                                 static_cast<uint64_t>(getpid()),
                                 /*isRoot=*/true));
  }
  double ofSteps = 0;
  UseMeter useMeter;
  LossWatch watch(run);
  SequentialOptions options{
      .firstStep = run.firstStep,
      .firstUpdate = firstUpdateOf(run),
      .onStep =
          [&](uint64_t step, Loss loss) {
            ofSteps = seconds();
            if (run.onStep)
              run.onStep(
                  {step, loss, ofSteps,
                   learningRateAt(*run.program.optimizer, run.steps, step),
                   useMeter.measure()});
            if (writer)
              reportCheckpoint(run, writer->poll());
            stepsDone.store(step + 1);
            return !watch.mustStop(step, loss) && !stop.load();
          },
      .evaluation = evaluationOf(run, /*isRoot=*/true),
      .evaluatesStart = evaluatesAtStart(run),
      .onTrained =
          [&](SequentialResult &trained) {
            const uint64_t digest =
                digestOfWeights(run.program, trained.weights);
            RunResult result = {.weights = std::move(trained.weights),
                                .gradients = std::move(trained.gradients),
                                .digest = digest,
                                .ranks = {},
                                .profiles = {},
                                .steps = stepsDone.load(),
                                .seconds = ofSteps};
            setStopReason(run, run.signals ? run.signals->stopSignal() : 0,
                          watch.divergence(), trained.halted, result);
            if (run.onResult)
              work([&] { run.onResult(result); });
            if (!result.endedRegularly() && result.stoppedBy != 0 &&
                run.onStopped)
              run.onStopped(result.stoppedBy);
            return result.endedRegularly() && evaluatesAtEnd(run, result.steps);
          },
      .keepFinite = run.keepFinite,
      .skipNonFinite = run.skipNonFinite};
  if (writer) {
    options.checkpointEvery = run.checkpoints->every;
    options.savesStart = run.checkpoints->resumedFrom.empty();
    options.isCheckpointWanted = [&] { return save.load(); };
    options.onCheckpoint = [&](uint64_t step, bool hasHalted,
                               const SequentialOptions::States &states) {
      reportCheckpoint(run, writer->finish(writer->awaitOwnParts()));
      save.store(false);
      writer->begin(step, hasHalted || watch.divergence() ? kHalted : "",
                    [&](size_t i, Bytes parameters, Bytes optimizer) {
                      std::ranges::copy(states[i].first, parameters.begin());
                      std::ranges::copy(states[i].second, optimizer.begin());
                    });
    };
  }
  trainSequentially(run.program, made, run.data, run.steps, options);
  if (writer) {
    phase.store(Saving); // for an unlimited time
    reportCheckpoint(run, writer->finish(writer->awaitOwnParts()));
  }
  if (run.onEnd)
    work(run.onEnd);
}
