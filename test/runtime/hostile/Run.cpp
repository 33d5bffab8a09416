//===- Run.cpp - A run by one thread in virtual time ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Run.h"

#include "runtime/device/Host.h"
#include "runtime/interpreter/Communication.h"
#include "runtime/stage/ExactStage.h"
#include "runtime/stage/Mix.h"
#include "runtime/train/Run.h"
#include "runtime/train/Tied.h"
#include "runtime/watch/StatusPage.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::Instruction;
using program::Opcode;

namespace {
class Scheduler {
public:
  Scheduler(const program::ProgramT &program, const RunOptions &options)
      : program(program), options(options), random(options.seed),
        data(program.seed), count(program::rankCount(program)), page(count),
        world(worldOptions(), random), clocks(count) {
    constexpr Time kStalls[] = {0, 10, 1000};
    longestStall = kStalls[random.below(std::size(kStalls))];
    stallOneIn = 1 + random.below(50);
    constexpr Time kSlowest[] = {1, 4, 100};
    Time slowest = kSlowest[random.below(std::size(kSlowest))];
    for (uint32_t rank = 0; rank < count; ++rank)
      slowness.push_back(1 + random.below(slowest));
  }

  Outcome run() {
    outcome.losses.resize(count);
    try {
      begin();
      while (std::optional<uint32_t> rank = choose())
        step(*rank);
    } catch (const std::exception &error) {
      fail("rank " + std::to_string(current) + ": " + error.what());
    }
    bool ended = std::ranges::none_of(
        ranks, [](const auto &rank) { return rank->next().has_value(); });
    if (outcome.failure.empty() && !ended)
      fail("deadlock");
    if (outcome.failure.empty())
      collect();
    return std::move(outcome);
  }

private:
  World::Options worldOptions() {
    constexpr Time kDelays[] = {0, 3, 100, 10000};
    return {.ranks = count,
            .buffered = options.buffered || program.message_model ==
                                                program::MessageModel::Buffered,
            .longestDelay = kDelays[random.below(std::size(kDelays))]};
  }

  void begin() {
    Interpreter::Options each;
    each.keepGradients = true;
    for (uint32_t rank = 0; rank < count; ++rank) {
      current = rank;
      ranks.push_back(std::make_unique<Interpreter>(
          program, groups, makeExactStage, data, *device, world.of(rank),
          page.of(rank), each));
    }
    for (uint32_t rank = 0; rank < count; ++rank)
      ranks[rank]->begin(options.steps,
                         [this, rank](uint64_t, std::optional<Loss> loss) {
                           if (loss)
                             outcome.losses[rank].push_back(*loss);
                         });
  }

  const Instruction &at(uint32_t rank, Interpreter::Position position) const {
    return program.workers[rank % program.workers.size()]
        ->instructions[position.instruction];
  }

  /// When a rank can take its next instruction, if that is known.
  std::optional<Time> readyAt(uint32_t rank) const {
    std::optional<Interpreter::Position> position = ranks[rank]->next();
    if (!position)
      return std::nullopt;
    const Instruction &instruction = at(rank, *position);
    if (instruction.opcode() != Opcode::Wait)
      return clocks[rank];
    std::optional<Time> complete = world.completion(rank, instruction.target());
    if (!complete)
      return std::nullopt;
    return std::max(clocks[rank], *complete);
  }

  /// The rank that is ready first, any one of several; none if none is.
  std::optional<uint32_t> choose() {
    std::optional<uint32_t> chosen;
    Time earliest = 0;
    uint64_t equal = 0;
    for (uint32_t rank = 0; rank < count; ++rank) {
      std::optional<Time> ready = readyAt(rank);
      if (!ready || (chosen && *ready > earliest))
        continue;
      equal = chosen && *ready == earliest ? equal + 1 : 1;
      if (random.oneIn(equal))
        chosen = rank;
      earliest = *ready;
    }
    if (chosen)
      outcome.time = earliest;
    return chosen;
  }

  void step(uint32_t rank) {
    current = rank;
    world.enter(rank, ranks[rank]->next()->instruction, outcome.time);
    ranks[rank]->advance();
    clocks[rank] = outcome.time + 1 + random.below(slowness[rank]);
    if (longestStall && random.oneIn(stallOneIn))
      clocks[rank] += random.below(longestStall);
    outcome.order = mix({outcome.order, rank});
    ++outcome.instructions;
  }

  void fail(const std::string &reason) {
    outcome.failure = reason;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      outcome.failure += "\n  rank " + std::to_string(rank) + ": ";
      std::optional<Interpreter::Position> position = ranks[rank]->next();
      if (!position) {
        outcome.failure += "ended";
        continue;
      }
      auto worker = static_cast<uint32_t>(rank % program.workers.size());
      outcome.failure +=
          "step " + std::to_string(position->step) + ", instruction " +
          std::to_string(position->instruction) + " (" +
          program::describe(program, worker, position->instruction) + ")";
    }
  }

  void collect() {
    auto copy = [](const Replicas &replicas) {
      std::vector<Outcome::Replica> copies;
      for (const auto &[key, bytes] : replicas)
        copies.push_back({key, Memory(bytes.get().begin(), bytes.get().end())});
      return copies;
    };
    for (const std::unique_ptr<Interpreter> &rank : ranks) {
      outcome.weights.push_back(copy(rank->weights()));
      outcome.gradients.push_back(copy(rank->gradients()));
    }
  }

  const program::ProgramT &program;
  const std::vector<ReduceGroup> groups = communicationOf(program).groups;
  const RunOptions options;
  Random random;
  SyntheticData data;
  uint32_t count;
  StatusPage page;
  World world;
  const std::unique_ptr<Device> device = makeHostDevice();
  std::vector<std::unique_ptr<Interpreter>> ranks;
  std::vector<Time> clocks; // by rank, when it is done with its last
  std::vector<Time> slowness;
  Time longestStall = 0;
  uint64_t stallOneIn = 1;
  uint32_t current = 0;
  Outcome outcome;
};
} // namespace

Outcome hostile::run(const program::ProgramT &program,
                     const RunOptions &options) {
  return Scheduler(program, options).run();
}

SequentialResult hostile::runSequentially(const program::ProgramT &program,
                                          uint64_t steps) {
  std::vector<std::unique_ptr<Stage>> stages;
  for (uint32_t stage = 0; stage < program.stages.size(); ++stage)
    stages.push_back(makeExactStage(program, stage));
  SyntheticData data(program.seed);
  return trainSequentially(program, stages, data, steps);
}

/// All stages' bytes of a model that has tied parameters once.
static Memory withTiedCopy(const program::ProgramT &program, Memory model) {
  if (!program.tied)
    return model;
  const program::Tied &tied = *program.tied;
  Bytes first = tiedOf(program, 0, Bytes(model));
  Memory copy(first.begin(), first.end());
  size_t rest = program.stages.back().weights_bytes() - tied.bytes();
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
    begins.push_back(begins.back() + stage.weights_bytes());
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
      for (const auto &[key, bytes] : replicas)
        if (!std::ranges::equal(
                bytes, std::span(whole).subspan(begins[key.second],
                                                begins[key.second + 1] -
                                                    begins[key.second])))
          return name + "other " + what + " of pipeline " +
                 std::to_string(key.first) + " stage " +
                 std::to_string(key.second);
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
