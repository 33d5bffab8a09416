//===- SimulatedRanks.h - A whole run on simulated devices ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreters of all ranks, each on a device of one simulation. One thread
// advances them, one instruction at a time. The seed decides which one advances
// next.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_SIMULATEDRANKS_H
#define CHIMERA_RUNTIME_INTERPRETER_SIMULATEDRANKS_H

#include "runtime/channel/simulated/Channels.h"
#include "runtime/interpreter/Communication.h"
#include "runtime/interpreter/Interpreter.h"

namespace chimera::runtime {

class SimulatedRanks {
public:
  struct Options {
    uint64_t seed = 0;
    /// The message model; by default the one that the program was proven under.
    std::optional<program::MessageModel> model = {};
    /// Whether each host advances only when its queues are empty, as on a
    /// synchronous device.
    bool synchronousHosts = false;
    Interpreter::Options interpreter = {};
    /// Called for evaluations with the rank, the step and the loss, in place of
    /// the interpreters' own callbacks.
    std::function<void(uint32_t, uint64_t, double)> onEvaluation = {};
    std::function<Status &(uint32_t)> statusOf; ///< by rank; required
    /// For tests: returns true for an ordering that the simulation is to leave
    /// out.
    std::function<bool(const simulated::Label &, simulated::Ordering)> ignores =
        {};
  };

  /// Creates the interpreters. Requires a verified program. Throws the
  /// interpreters' exceptions.
  SimulatedRanks(const program::ProgramT &program, const StageFactory &factory,
                 DataSource &data, const Options &options);

  using OnStep = std::function<void(uint32_t, uint64_t, std::optional<Loss>)>;

  /// Runs all ranks to the end. Calls `onStep` with the rank, the step and its
  /// loss. Throws std::runtime_error if nothing can advance although not all
  /// ranks have ended, or, at the end, if two uses of memory were not ordered.
  /// Also throws the exceptions of operations. Call it once.
  void run(uint64_t steps, const OnStep &onStep);
  /// Evaluates the model after `run`. Throws the same exceptions.
  void evaluate();

  Interpreter &rank(uint32_t rank) { return *ranks.at(rank); }
  /// The rank that was running when a call threw.
  uint32_t current() const { return running; }
  const simulated::Simulation &world() const { return simulation; }

private:
  simulated::Options optionsOf(const Options &options) const;
  void runAll();
  std::string unfinished() const;

  const program::ProgramT &program;
  const Communication communication;
  const bool synchronousHosts;
  simulated::Simulation simulation;
  std::vector<std::unique_ptr<Channels>> channels;
  std::vector<std::unique_ptr<Interpreter>> ranks;
  uint32_t running = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SIMULATEDRANKS_H
