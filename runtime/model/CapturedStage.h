//===- CapturedStage.h - A stage that runs as graphs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph always works on the same memory. In a program with a flush, an action
// on a micro-batch has the same operands in every step, and the actions have
// the same order. So each action on each micro-batch has one graph, which works
// on the operands themselves. All graphs of a stage share one memory pool. The
// stashes are in this pool, and a stash takes the place of an earlier one that
// is no longer needed.
//
// The first step runs the actions without graphs, so that libraries initialise
// themselves. The second step captures the actions. Later steps launch the
// captured graphs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H
#define CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H

#include "runtime/model/GraphFactory.h"
#include "runtime/model/Stage.h"

#include <string>

namespace chimera::runtime {

/// An empty string if the program's stages can run as graphs, else the reason
/// why not. Weights must stay at one address. In schedules without a flush they
/// do not. An attention must not drop probabilities: a graph cannot set the
/// random numbers of LibTorch's kernel.
std::string graphsUnsupportedReason(const program::ProgramT &program);

/// Wraps `stage` and runs its actions as graphs that `graphs`, which no other
/// stage has, makes. Requires that the actions put operations on a queue and do
/// not wait for them. An optimizer step runs without a graph, since it differs
/// from step to step.
std::unique_ptr<Stage> wrapWithGraphs(std::unique_ptr<Stage> stage,
                                      std::shared_ptr<GraphFactory> graphs);

/// After this number of warm-up runs of a training step, every graph is
/// captured.
inline constexpr int kGraphWarmUpRuns = 2;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H
