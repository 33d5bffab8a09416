//===- Gather.h - The whole model at one rank -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ranks exchange outside the program, before its first and after its last
// instruction. Every rank makes the same calls in the same order. All throw
// WaitError where a wait for another rank exceeds `timeout`.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_GATHER_H
#define CHIMERA_RUNTIME_TRAIN_GATHER_H

#include "runtime/control/Messages.h"
#include "runtime/interpreter/Interpreter.h"
#include "runtime/train/Clocks.h"

namespace chimera::runtime {

/// Returns the whole model at `root`, and nothing elsewhere: the parameters, or
/// their gradients, of all stages of pipeline 0 of copy 0 in stage order, with
/// tied parameters once, in the first stage. Calls `onPiece` at the root every
/// 16 MiB.
std::vector<std::byte> gatherStages(const program::ProgramT &program,
                                    Control &control, uint32_t root,
                                    const Replicas &replicas,
                                    std::chrono::milliseconds timeout,
                                    const std::function<void()> &onPiece = {});

/// Compares, at `root`, all replicas of each stage over pipelines and copies,
/// and all copies of tied parameters, the first stage's and the last's. Throws
/// std::runtime_error there, naming the first that differs.
void checkReplicas(const program::ProgramT &program, Control &control,
                   uint32_t root, const Replicas &replicas,
                   std::chrono::milliseconds timeout);

/// Returns the profiles of all ranks, in rank order, at `root`, and nothing
/// elsewhere.
std::vector<Profile> gatherProfiles(Control &control, uint32_t root,
                                    const Profile &profile,
                                    std::chrono::milliseconds timeout);

/// The same of their traces, whose times become those of the root's clock, as
/// far as `clocks` (gatherClocks) tell.
std::vector<Trace> gatherTraces(Control &control, uint32_t root,
                                const Trace &trace,
                                const std::vector<ClockOffset> &clocks,
                                std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_GATHER_H
