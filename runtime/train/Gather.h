//===- Gather.h - Gathering results at one rank -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exchange of data outside the program, before its first and after its last
// instruction. Every rank must make the same calls in the same order. All
// functions throw WaitError if a wait for another rank exceeds `timeout`.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_GATHER_H
#define CHIMERA_RUNTIME_TRAIN_GATHER_H

#include "runtime/control/Messages.h"
#include "runtime/interpreter/Interpreter.h"
#include "runtime/train/Clocks.h"

namespace chimera::runtime {

/// Returns the whole model at `root`, and nothing at the other ranks: the
/// parameters (or gradients) of all stages of pipeline 0 in copy 0, in stage
/// order, with tied parameters once, in the first stage. The root calls
/// `onPiece` after every 16 MiB that it receives.
std::vector<std::byte> gatherStages(const program::ProgramT &program,
                                    Control &control, uint32_t root,
                                    const ReplicaBytes &replicas,
                                    std::chrono::milliseconds timeout,
                                    const std::function<void()> &onPiece = {});

/// Compares, at `root`, the replicas of each stage in all pipelines and copies,
/// and all copies of tied parameters in the first and the last stage. If a
/// replica differs, throws std::runtime_error at `root`. The message names the
/// first such replica.
void checkReplicas(const program::ProgramT &program, Control &control,
                   uint32_t root, const ReplicaBytes &replicas,
                   std::chrono::milliseconds timeout);

/// Returns the profiles of all ranks, in rank order, at `root`, and nothing at
/// the other ranks.
std::vector<Profile> gatherProfiles(Control &control, uint32_t root,
                                    const Profile &profile,
                                    std::chrono::milliseconds timeout);

/// Returns the traces of all ranks, in rank order, at `root`, and nothing at
/// the other ranks. Their times are converted to the root's clock, using
/// `clocks` (from gatherClocks).
std::vector<Trace> gatherTraces(Control &control, uint32_t root,
                                const Trace &trace,
                                const std::vector<ClockOffset> &clocks,
                                std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_GATHER_H
