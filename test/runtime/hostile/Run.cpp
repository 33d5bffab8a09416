//===- Run.cpp - A run by one thread in virtual time ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Run.h"

#include "runtime/interpreter/SimulatedRanks.h"
#include "runtime/model/ExactStage.h"
#include "runtime/train/Run.h"
#include "runtime/train/Tied.h"
#include "runtime/watch/StatusPage.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;

namespace {
std::vector<Outcome::Replica> copyOf(const ReplicaBytes &replicas) {
  std::vector<Outcome::Replica> copies;
  for (const auto &[key, bytes] : replicas)
    copies.push_back({key, Memory(bytes.get().begin(), bytes.get().end())});
  return copies;
}
} // namespace

Outcome hostile::run(const program::ProgramT &program,
                     const RunOptions &options) {
  Outcome outcome;
  uint32_t count = program::rankCount(program);
  outcome.losses.resize(count);
  SyntheticData data(program.seed);
  StatusPage page(count);
  SimulatedRanks ranks(
      program, makeExactStage, data,
      {.seed = options.seed,
       .model = options.model,
       .synchronousHosts = options.synchronousHosts,
       .interpreter = {.keepGradients = true},
       .statusOf = [&](uint32_t rank) -> Status & { return page.of(rank); }});
  try {
    ranks.run(options.steps,
              [&](uint32_t rank, uint64_t, std::optional<Loss> loss) {
                if (loss)
                  outcome.losses[rank].push_back(*loss);
              });
    for (uint32_t rank = 0; rank < count; ++rank) {
      outcome.weights.push_back(copyOf(ranks.rank(rank).weights()));
      outcome.gradients.push_back(copyOf(ranks.rank(rank).gradients()));
    }
  } catch (const std::exception &error) {
    outcome.failure = error.what();
  }
  for (uint32_t rank = 0; rank < count; ++rank) {
    outcome.instructions += ranks.rank(rank).instructionsRun();
    outcome.hostBlocks += ranks.rank(rank).hostBlocksInSteps();
  }
  outcome.order = ranks.world().order();
  return outcome;
}

SequentialResult hostile::runSequentially(const program::ProgramT &program,
                                          uint64_t steps) {
  std::vector<std::unique_ptr<Stage>> stages;
  for (uint32_t stage = 0; stage < program.stages.size(); ++stage)
    stages.push_back(makeExactStage(program, stage));
  SyntheticData data(program.seed);
  return trainSequentially(program, stages, data, steps);
}

/// The model has tied parameters only once, but two stages have a copy. Inserts
/// the second copy into the model's bytes.
static Memory withTiedCopy(const program::ProgramT &program, Memory model) {
  if (!program.tied)
    return model;
  const program::Tied &tied = *program.tied;
  Bytes first = tiedOf(program, 0, Bytes(model));
  Memory copy(first.begin(), first.end());
  size_t rest = program::gradientBytes(program.stages.back()) - tied.bytes();
  model.insert(model.end() - static_cast<ptrdiff_t>(rest) +
                   static_cast<ptrdiff_t>(tied.last_offset()),
               copy.begin(), copy.end());
  return model;
}

std::string hostile::difference(const program::ProgramT &program,
                                const Outcome &outcome,
                                const SequentialResult &expected) {
  if (!outcome.failure.empty())
    return outcome.failure;
  std::vector<size_t> begins = {0};
  for (const program::Stage &stage : program.stages)
    begins.push_back(begins.back() + program::gradientBytes(stage));
  const Memory weights = withTiedCopy(program, expected.weights);
  const Memory gradients = withTiedCopy(program, expected.gradients);
  bool hasLosses =
      std::ranges::any_of(program.communicators, [](const auto &communicator) {
        return communicator->kind == program::ValueKind::Loss;
      });
  for (uint32_t rank = 0; rank < outcome.losses.size(); ++rank) {
    std::string name = "rank " + std::to_string(rank) + ": ";
    const std::vector<Loss> &losses = outcome.losses[rank];
    if (!losses.empty())
      hasLosses = false;
    for (size_t step = 0; step < losses.size(); ++step)
      if (losses.size() != expected.losses.size() ||
          losses[step].sum != expected.losses[step].sum)
        return name + "another loss in step " + std::to_string(step);
    auto compare = [&](const std::vector<Outcome::Replica> &replicas,
                       const Memory &whole, const char *what) -> std::string {
      for (const auto &[key, bytes] : replicas) {
        size_t size = begins[key.second + 1] - begins[key.second];
        if (!std::ranges::equal(
                ConstBytes(bytes).first(std::min(size, bytes.size())),
                std::span(whole).subspan(begins[key.second], size)))
          return name + "other " + what + " of pipeline " +
                 std::to_string(key.first) + " stage " +
                 std::to_string(key.second);
      }
      return {};
    };
    for (const std::string &found :
         {compare(outcome.weights[rank], weights, "weights"),
          compare(outcome.gradients[rank], gradients, "gradients")})
      if (!found.empty())
        return found;
  }
  return hasLosses && !expected.losses.empty() ? "no rank has the losses"
                                               : std::string();
}

std::string hostile::differenceOnThreads(const program::ProgramT &program,
                                         const SequentialResult &expected) {
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = expected.losses.size();
  run.timeout = std::chrono::seconds(60);
  run.gatherWeights = run.gatherGradients = run.checkReplicas = true;
  std::string found = "no result";
  std::vector<Loss> losses;
  run.onStep = [&](const StepEvent &event) {
    losses.push_back(event.loss.value_or(Loss{}));
  };
  run.onResult = [&](const RunResult &result) {
    found = result.weights != expected.weights       ? "other weights"
            : result.gradients != expected.gradients ? "other gradients"
            : !std::ranges::equal(losses, expected.losses, {}, &Loss::sum,
                                  &Loss::sum)
                ? "other losses"
                : "";
  };
  try {
    runInProcess(run);
  } catch (const std::exception &error) {
    return error.what();
  }
  return found;
}
