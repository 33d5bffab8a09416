//===- SimulatedRanks.h - A whole run on simulated devices ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreters of all ranks of a run. Each has its own simulated device.
// One thread runs all interpreters, one instruction at a time. The seed
// determines which interpreter or device advances next.
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
    /// The message model. If it is not set, the model for which the program was
    /// proven.
    std::optional<program::MessageModel> model = {};
    /// If true, a host waits before each instruction until all queues of its
    /// device are empty, as if every operation of the device were synchronous.
    bool synchronousHosts = false;
    Interpreter::Options interpreter = {};
    /// Called instead of interpreter.evaluation.onResult if set, with the rank,
    /// the number of steps before the evaluation, and the result.
    std::function<void(uint32_t, uint64_t, const EvaluationResult &)>
        onEvaluation = {};
    /// Returns the status entry of a rank. Required.
    std::function<Status &(uint32_t)> statusOf;
    /// For tests: if it returns true, the simulation ignores this ordering
    /// between two operations.
    std::function<bool(const simulated::Label &, simulated::Ordering)> ignores =
        {};
  };

  /// Creates the interpreters. Requires a verified program. Throws the
  /// exceptions of the constructor of Interpreter.
  SimulatedRanks(const program::ProgramT &program, const StageFactory &factory,
                 DataSource &data, const Options &options);

  using OnStep = std::function<void(uint32_t, uint64_t, std::optional<Loss>)>;

  /// Runs all ranks to the end. Calls `onStep` with the rank, the step and its
  /// loss. Throws std::runtime_error if no rank and no device can advance
  /// before all ranks have ended. At the end, throws std::runtime_error if two
  /// conflicting uses of the same memory were not ordered. Also throws the
  /// exceptions of operations. Call it once.
  void run(uint64_t steps, const OnStep &onStep);
  /// Evaluates the model after `run`. Throws the same exceptions.
  void evaluate();

  Interpreter &rank(uint32_t rank) { return *ranks.at(rank); }
  /// If a member function threw: the rank whose code threw.
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
