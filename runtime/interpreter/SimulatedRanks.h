//===- SimulatedRanks.h - All ranks of a run on simulated devices -*- C++
//-*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank's interpreter, on a device of one simulation and stepped an
// instruction at a time by one thread. The seed decides when each goes on.
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
    /// How messages behave; else as the program was proven.
    std::optional<program::MessageModel> model = {};
    /// Whether each host goes on only when its queues have executed all, as on
    /// a device that executes at once.
    bool hostsWait = false;
    Interpreter::Options interpreter = {};
    /// Hears of evaluations in place of theirs, with the rank.
    std::function<void(uint32_t, uint64_t, double)> onEvaluation = {};
    std::function<Status &(uint32_t)> statusOf; ///< by rank; required
    /// For tests: orderings that are left out.
    std::function<bool(const simulated::Label &, simulated::Ordering)>
        isLeftOut = {};
  };

  /// Makes the interpreters. Requires a verified program. Throws what they
  /// throw.
  SimulatedRanks(const program::ProgramT &program, const StageFactory &factory,
                 DataSource &data, const Options &options);

  using OnStep = std::function<void(uint32_t, uint64_t, std::optional<Loss>)>;

  /// Runs all ranks to the end, and calls `onStep` with the rank, the step and
  /// its loss. Throws std::runtime_error where nothing can happen any more
  /// though not all is done, what operations throw, and, at the end, where two
  /// uses of memory were not ordered. To be called once.
  void run(uint64_t steps, const OnStep &onStep);
  /// After that: evaluates, and throws likewise.
  void evaluate();

  Interpreter &rank(uint32_t rank) { return *ranks.at(rank); }
  /// The rank that was last in a call that threw.
  uint32_t current() const { return running; }
  const simulated::Simulation &world() const { return simulation; }

private:
  simulated::Options optionsOf(const Options &options) const;
  void runAll();
  std::string unfinished() const;

  const program::ProgramT &program;
  const Communication communication;
  const bool hostsWait;
  simulated::Simulation simulation;
  std::vector<std::unique_ptr<Channels>> channels;
  std::vector<std::unique_ptr<Interpreter>> ranks;
  uint32_t running = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SIMULATEDRANKS_H
