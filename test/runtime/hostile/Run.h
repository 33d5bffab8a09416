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
  /// The message model of the run. By default the model under which the program
  /// was proven.
  std::optional<program::MessageModel> model = {};
  /// Whether hosts wait: each host advances only when its queues are empty, as
  /// with a device that executes immediately.
  bool synchronousHosts = true;
};

/// The options of a run in each of three modes:
/// - on hosts that wait, with the message model under which the program was
///   proven;
/// - on hosts that wait, with buffered messages;
/// - on hosts that do not wait.
inline std::vector<RunOptions> runsOf(uint64_t seed, uint64_t steps) {
  return {
      {.seed = seed, .steps = steps},
      {.seed = seed, .steps = steps, .model = program::MessageModel::Buffered},
      {.seed = seed, .steps = steps, .synchronousHosts = false}};
}

struct Outcome {
  /// Empty if all ranks ended and all conflicting uses of memory were ordered.
  /// Otherwise the violations, or a text that says which instructions cannot
  /// advance.
  std::string failure;
  uint64_t instructions = 0;
  /// How often a host blocked within a step until its device had finished work.
  uint64_t hostBlocks = 0;
  /// A hash of the order in which operations ran.
  uint64_t order = 0;

  std::vector<std::vector<Loss>> losses; ///< by rank, then step
  using Replica = std::pair<std::pair<uint32_t, uint32_t>, Memory>;
  std::vector<std::vector<Replica>> weights;   ///< by rank
  std::vector<std::vector<Replica>> gradients; ///< by rank, of the last update
};

/// Runs all ranks of a program. Never blocks. Requires a program that
/// verifyProgram accepts under the message model, or a program whose accesses
/// are all within its memory.
Outcome run(const program::ProgramT &program, const RunOptions &options);

/// Runs the same training on one device, with the same stages and data.
SequentialResult runSequentially(const program::ProgramT &program,
                                 uint64_t steps);

/// The first difference between an outcome and the result of training on one
/// device: the failure, or a loss, weight or gradient. Empty if they are equal.
std::string difference(const program::ProgramT &program, const Outcome &outcome,
                       const SequentialResult &expected);

/// Runs the program as chimera-run does, with one thread per rank, for as many
/// steps as `expected` has losses. Returns the first difference from
/// `expected`, or why the run failed; empty if they are equal.
std::string differenceOnThreads(const program::ProgramT &program,
                                const SequentialResult &expected);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
