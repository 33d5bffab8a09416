//===- TrainingRun.cpp - What a training run does -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

uint32_t chimera::runtime::rootOf(const program::ProgramT &program) {
  uint32_t root = UINT32_MAX;
  for (const auto &communicator : program.communicators)
    if (communicator->kind == program::ValueKind::Loss)
      for (const program::Contribution &summand : communicator->contributions)
        root = std::min(root, summand.worker());
  return root == UINT32_MAX ? 0 : root;
}

Evaluation chimera::runtime::evaluationOf(const TrainingRun &run, bool isRoot) {
  Evaluation evaluation = run.evaluation;
  if (!isRoot || !evaluation.onResult)
    evaluation.onResult = [](uint64_t, const EvaluationResult &) {};
  return evaluation;
}

bool chimera::runtime::evaluatesAtEnd(const TrainingRun &run, uint64_t step) {
  return run.evaluation.data && (step >= run.steps || !run.checkpoints ||
                                 run.evaluation.isDueAfter(step));
}

bool chimera::runtime::evaluatesAtStart(const TrainingRun &run) {
  return run.firstStep > 0 && run.firstStep < run.steps &&
         run.evaluation.isDueAfter(run.firstStep);
}

bool chimera::runtime::gathersWeightsAtEnd(const TrainingRun &run,
                                           const RunResult &result) {
  return run.gatherWeights &&
         (!run.checkpoints || result.divergence || result.endedRegularly());
}

uint64_t chimera::runtime::firstUpdateOf(const TrainingRun &run) {
  return run.firstUpdate.value_or(run.firstStep *
                                  program::updatesPerStep(run.program));
}
