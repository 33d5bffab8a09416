//===- Run.h - A run by one thread in virtual time --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank's real interpreter, on exact stages, stepped an instruction at a
// time. The seed decides how fast each rank is, when and for how long it
// stalls, how long messages and all-reduces take, and who goes first where two
// could; nothing else does, so a seed is a run.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_RUN_H

#include "runtime/train/Sequential.h"
#include "test/runtime/hostile/World.h"

namespace chimera::runtime::hostile {

struct RunOptions {
  uint64_t seed = 0;
  uint64_t steps = 3;
  /// Whether a send completes without its receive; else as the program says.
  bool buffered = false;
};

struct Outcome {
  /// Empty if all ranks ended; else the reason, a deadlock or what a rank
  /// threw, and a line for each rank that says what it was at.
  std::string failure;
  Time time = 0; ///< at the end
  uint64_t instructions = 0;
  /// Of the order in which ranks were stepped.
  uint64_t order = 0;

  std::vector<std::vector<Loss>> losses; ///< by rank, then step
  using Replica = std::pair<std::pair<uint32_t, uint32_t>, Memory>;
  std::vector<std::vector<Replica>> weights;   ///< by rank
  std::vector<std::vector<Replica>> gradients; ///< by rank, of the last update
};

/// Requires a program that verifyProgram accepts, or accepts under the buffered
/// model if that is asked for. Never blocks.
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
