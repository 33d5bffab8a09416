//===- Run.h - A run by one thread in virtual time --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the real interpreter of every rank, with exact stages on simulated
// devices (see runtime/device/simulated). A seed determines a run.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H

#include "runtime/train/Sequential.h"

#include <optional>

namespace chimera::runtime::hostile {

using Memory = std::vector<std::byte>;

/// The steps of a run.
inline constexpr uint64_t kRunSteps = 3;

struct RunOptions {
  uint64_t seed = 0;
  uint64_t steps = kRunSteps;
  /// How messages behave; by default as the program was proven.
  std::optional<program::MessageModel> model = {};
  /// Whether hosts wait, as on a device that executes immediately.
  bool synchronousHosts = true;
};

/// A run of each mode: on hosts that wait, with messages as the program was
/// proven and with buffered messages; and on hosts that do not wait.
inline std::vector<RunOptions> runsOf(uint64_t seed, uint64_t steps) {
  return {
      {.seed = seed, .steps = steps},
      {.seed = seed, .steps = steps, .model = program::MessageModel::Buffered},
      {.seed = seed, .steps = steps, .synchronousHosts = false}};
}

struct Outcome {
  /// Empty if all ranks ended and every two uses of memory were ordered.
  /// Otherwise the violations, or a text that says that nothing more can
  /// happen.
  std::string failure;
  uint64_t instructions = 0;
  /// How often a host waited for its device within a step.
  uint64_t hostBlocks = 0;
  /// A hash of the order in which operations ran.
  uint64_t order = 0;

  std::vector<std::vector<Loss>> losses; ///< by rank, then step
  using Replica = std::pair<std::pair<uint32_t, uint32_t>, Memory>;
  std::vector<std::vector<Replica>> weights;   ///< by rank
  std::vector<std::vector<Replica>> gradients; ///< by rank, of the last update
};

/// Requires a program that verifyProgram accepts under the message model, or
/// one whose accesses are all within its memory. Never blocks.
Outcome run(const program::ProgramT &program, const RunOptions &options);

/// Runs the same training on one device, with the same stages and data.
SequentialResult runSequentially(const program::ProgramT &program,
                                 uint64_t steps);

/// The first difference between an outcome and that of one device: the failure,
/// or a loss, weight or gradient. Empty if they are equal.
std::string difference(const program::ProgramT &program, const Outcome &outcome,
                       const SequentialResult &expected);

/// Runs the program as chimera-run does, with one thread per rank, for as many
/// steps as `expected` has losses. Returns the first difference from
/// `expected`, or why the run failed; empty if they are equal.
std::string differenceOnThreads(const program::ProgramT &program,
                                const SequentialResult &expected);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
