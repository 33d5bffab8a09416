//===- Run.h - A run by one thread in virtual time --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank's real interpreter, with exact stages on simulated devices (see
// runtime/device/simulated). A seed is a run.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H

#include "runtime/train/Sequential.h"

#include <optional>

namespace chimera::runtime::hostile {

using Memory = std::vector<std::byte>;

struct RunOptions {
  uint64_t seed = 0;
  uint64_t steps = 3;
  /// How messages behave; else as the program was proven.
  std::optional<program::MessageModel> model = {};
  /// Whether hosts wait as on a device that executes at once.
  bool hostsWait = true;
};

/// A run of each kind: on hosts that wait, with messages as the program was
/// proven and buffered; on hosts that do not wait.
inline std::vector<RunOptions> runsOf(uint64_t seed, uint64_t steps) {
  return {
      {.seed = seed, .steps = steps},
      {.seed = seed, .steps = steps, .model = program::MessageModel::Buffered},
      {.seed = seed, .steps = steps, .hostsWait = false}};
}

struct Outcome {
  /// Empty if all ranks ended and every two uses of memory were ordered; else
  /// what was found, or that nothing could happen any more.
  std::string failure;
  uint64_t instructions = 0;
  /// How often a host waited for its device within a step.
  uint64_t hostBlocks = 0;
  /// Of the order in which things happened.
  uint64_t order = 0;

  std::vector<std::vector<Loss>> losses; ///< by rank, then step
  using Replica = std::pair<std::pair<uint32_t, uint32_t>, Memory>;
  std::vector<std::vector<Replica>> weights;   ///< by rank
  std::vector<std::vector<Replica>> gradients; ///< by rank, of the last update
};

/// Requires a program that verifyProgram accepts under the model, or all of
/// whose accesses stay within its memory. Never blocks.
Outcome run(const program::ProgramT &program, const RunOptions &options);

/// The program's description on one device, with the same stages and data.
SequentialResult runSequentially(const program::ProgramT &program,
                                 uint64_t steps);

/// What an outcome lacks to be that of one device: the failure, or the first
/// loss, weight or gradient that differs; empty if nothing does.
std::string difference(const program::ProgramT &program, const Outcome &outcome,
                       const SequentialResult &expected);

/// Runs the program as chimera-run does, a thread a rank, for as many steps as
/// `expected` has losses: what differs from that, or why it failed; empty if
/// nothing does.
std::string differenceOnThreads(const program::ProgramT &program,
                                const SequentialResult &expected);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
