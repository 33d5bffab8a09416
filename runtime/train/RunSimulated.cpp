//===- RunSimulated.cpp - A run on simulated devices ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"
#include "runtime/interpreter/SimulatedRanks.h"
#include "runtime/model/LearningRate.h"
#include "runtime/train/CheckpointedSteps.h"
#include "runtime/train/OnThreads.h"
#include "runtime/train/Run.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/UseMeter.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

#include <numeric>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// Runs all steps and returns their time in seconds. `watch` sees the losses of
/// the root.
double runSteps(const TrainingRun &run, SimulatedRanks &ranks, StatusPage &page,
                LossWatch &watch) {
  std::vector<uint32_t> all(page.ranks());
  std::iota(all.begin(), all.end(), 0);
  SignalListener listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      return page.askToStop();
    if (signal == SIGUSR2)
      return handleSaveSignal(run, page, {});
    writeReport(run.program, page, all, {},
                kEndedBy + signalName(signal) + run.signals->unsavedText());
    endProcess(128 + signal);
  });
  int64_t begin = steadyNanoseconds();
  auto seconds = [&] {
    return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
  };
  uint32_t root = rootOf(run.program);
  double ofSteps = 0;
  UseMeter useMeter;
  ranks.run(run.steps - run.firstStep, [&](uint32_t rank, uint64_t step,
                                           std::optional<Loss> loss) {
    ofSteps = seconds();
    if (rank == root && run.onStep)
      run.onStep({step, loss, ofSteps,
                  learningRateAt(*run.program.optimizer, run.steps, step),
                  useMeter.measure()});
    if (rank == root && watch.mustStop(step, loss))
      page.askToStop();
  });
  return ofSteps;
}
} // namespace

void chimera::runtime::runSimulated(const TrainingRun &run, uint64_t seed) {
  uint32_t count = program::rankCount(run.program);
  checkThreadCount(count); // runOnThreads makes a thread for each rank
  if (run.profile || run.traceSteps > 0)
    throw std::invalid_argument("simulated devices have no times to profile or "
                                "trace");
  if (run.checkpoints)
    throw std::invalid_argument("runs on simulated devices write no "
                                "checkpoints");
  auto failure = [&](const char *reason) {
    return RunFailure("simulated devices, seed " + std::to_string(seed) + ": " +
                      reason);
  };
  StatusPage page(count);
  if (run.onThread)
    run.onThread();
  try {
    SimulatedRanks::Options options;
    options.seed = seed;
    options.interpreter.firstStep = run.firstStep;
    options.interpreter.firstUpdate = firstUpdateOf(run);
    options.interpreter.steps = run.steps;
    options.interpreter.keepGradients = run.gatherGradients;
    options.interpreter.mayBeginStep = [&](uint64_t step) {
      return page.decide(step) == StepDecision::Begin;
    };
    options.interpreter.keepFinite = run.keepFinite;
    options.interpreter.skipNonFinite = run.skipNonFinite;
    options.interpreter.onHalt = [&] { page.askToStop(); };
    options.interpreter.evaluation = run.evaluation;
    options.onEvaluation =
        [&, root = rootOf(run.program)](uint32_t rank, uint64_t step,
                                        const EvaluationResult &result) {
          evaluationOf(run, rank == root).onResult(step, result);
        };
    options.statusOf = [&](uint32_t rank) -> Status & { return page.of(rank); };
    SimulatedRanks ranks(run.program, run.stages, run.data, options);
    LossWatch watch(run);
    if (evaluatesAtStart(run))
      ranks.evaluate();
    double seconds = runSteps(run, ranks, page, watch);
    for (uint32_t rank = 0; rank < count; ++rank)
      page.of(rank).enter(Status::Finishing);
    std::vector<std::unique_ptr<Control>> controls =
        makeInProcessControls(count);
    std::atomic<bool> goesOn = true;
    runOnThreads(
        run, page, controls, [&](uint32_t rank, const OnFailure &fail) {
          if (!gatherAndSaveResult(run, *controls[rank], ranks.rank(rank),
                                   watch.divergence(), seconds, 0, Profile(),
                                   Trace(), page.of(rank), fail))
            goesOn.store(false);
        });
    if (run.evaluation.data && goesOn.load())
      ranks.evaluate();
    runOnThreads(run, page, controls,
                 [&](uint32_t rank, const OnFailure &fail) {
                   endRank(run, *controls[rank], page.of(rank), fail);
                 });
  } catch (const std::exception &error) {
    throw failure(error.what());
  } catch (...) {
    throw failure(kUnknownError);
  }
}
