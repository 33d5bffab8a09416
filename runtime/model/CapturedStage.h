//===- CapturedStage.h - A stage that runs as graphs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph always works on the same memory. Stashes that are alive at the same
// time therefore need separate graphs. A slot is the set of graphs for one
// stash at a time, from its forward to its last backward action. Operands and
// results are copied to and from fixed buffers. The first use of a slot runs
// the actions without graphs, so that libraries initialise themselves. The
// second use captures the actions. Later uses launch the captured graphs.
//
// Graphs of backwards always add to the gradient sum. If an action must
// overwrite the sum, the memory of the sum is zeroed before the launch.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H
#define CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H

#include "runtime/model/GraphFactory.h"
#include "runtime/model/Stage.h"

#include <string>

namespace chimera::runtime {

/// An empty string if the program's stages can run as graphs, else the reason
/// why not. An action must do the same for every micro-batch of every step. So
/// dropout is impossible: its random numbers differ each time. Weights must
/// stay at one address. In schedules without a flush they do not. All backwards
/// of a stage must be split, or none.
std::string graphsUnsupportedReason(const program::ProgramT &program);

/// Wraps `stage` and runs its actions as graphs that `graphs` makes. Requires
/// that the actions put operations on a queue and do not wait for them. An
/// optimizer step runs without a graph, since it differs from step to step.
std::unique_ptr<Stage> wrapWithGraphs(std::unique_ptr<Stage> stage,
                                      std::shared_ptr<GraphFactory> graphs);

/// After this number of warm-up runs of a training step, every graph is
/// captured.
inline constexpr int kGraphWarmUpRuns = 2;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CAPTUREDSTAGE_H
