//===- SimulatedRanks.cpp - All ranks of a run on simulated devices -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/SimulatedRanks.h"

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

SimulatedRanks::SimulatedRanks(const program::ProgramT &program,
                               const StageFactory &factory, DataSource &data,
                               const Options &options)
    : program(program), communication([&] {
        Communication all = communicationOf(program);
        all.model = options.model.value_or(all.model);
        return all;
      }()),
      synchronousHosts(options.synchronousHosts),
      simulation(optionsOf(options)),
      channels(makeSimulatedChannels(simulation, program::rankCount(program))) {
  for (running = 0; running < channels.size(); ++running) {
    channels[running]->prepare(communication);
    Interpreter::Options own = options.interpreter;
    if (options.onEvaluation)
      own.evaluation.onResult =
          [hear = options.onEvaluation,
           rank = running](uint64_t step, const EvaluationResult &result) {
            hear(rank, step, result);
          };
    ranks.push_back(std::make_unique<Interpreter>(
        program, communication.groups, factory, data,
        simulation.device(running), *channels[running],
        options.statusOf(running), own));
  }
}

simulated::Options SimulatedRanks::optionsOf(const Options &options) const {
  return {.ranks = program::rankCount(program),
          .seed = options.seed,
          .describe =
              [this](const simulated::Label &label) {
                auto worker =
                    static_cast<uint32_t>(label.rank % program.workers.size());
                return "rank " + std::to_string(label.rank) + " instruction " +
                       std::to_string(label.instruction) + " (" +
                       program::describe(program, worker, label.instruction) +
                       ")";
              },
          .ignores = options.ignores};
}

void SimulatedRanks::run(uint64_t steps, const OnStep &onStep) {
  for (running = 0; running < ranks.size(); ++running)
    ranks[running]->begin(steps, [&onStep, rank = running](
                                     uint64_t step, std::optional<Loss> loss) {
      onStep(rank, step, loss);
    });
  runAll();
}

void SimulatedRanks::evaluate() {
  for (running = 0; running < ranks.size(); ++running)
    ranks[running]->beginEvaluation();
  runAll();
}

/// Runs all ranks until they have finished the run or the evaluation that was
/// begun.
void SimulatedRanks::runAll() {
  std::vector<simulated::Simulation::Host> hosts;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    hosts.push_back({[this, rank] {
                       return ranks[rank]->next() &&
                              !ranks[rank]->isTooFarAhead() &&
                              (!synchronousHosts || simulation.isIdle(rank));
                     },
                     [this, rank] {
                       running = rank;
                       ranks[rank]->advance();
                     }});
  }
  simulation.setHosts(std::move(hosts));
  while (simulation.step())
    ;
  simulation.setHosts({});
  std::string open = unfinished();
  if (!open.empty())
    throw std::runtime_error("no rank can advance:\n" + open);
  for (running = 0; running < ranks.size(); ++running)
    ranks[running]->finish();
  std::string found;
  for (const std::string &violation : simulation.violations())
    found += (found.empty() ? "" : "\n") + violation;
  if (!found.empty())
    throw std::runtime_error(found);
}

std::string SimulatedRanks::unfinished() const {
  std::string lines = simulation.unfinished();
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank]->next())
      lines += "  rank " + std::to_string(rank) +
               ": its host has not enqueued all its instructions\n";
  return lines;
}
