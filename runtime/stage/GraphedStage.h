//===- GraphedStage.h - A stage whose actions are graphs --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph works on the same memory whenever it is launched. So each stash that
// is alive at a time has graphs of its own, for the actions from its forward to
// its end, and what goes in and out is copied to and from memory that they
// know. A stash's first use runs the actions as they are, so that libraries are
// ready; the second captures them; all others launch what was captured.
//
// A gradient sum that begins is zeroed first: graphs add.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_GRAPHEDSTAGE_H
#define CHIMERA_RUNTIME_STAGE_GRAPHEDSTAGE_H

#include "runtime/stage/Graphs.h"
#include "runtime/stage/Stage.h"

#include <string>

namespace chimera::runtime {

/// Empty where stages of the program may be graphs, else why not: an action
/// must be the same for every micro-batch of every step, so there can be no
/// dropout, whose numbers are others each time, and weights must stay where
/// they are, which they do with a flush.
std::string whyNoGraphs(const program::ProgramT &program);

/// `stage`, whose actions put operations on a queue and wait for none of them,
/// by graphs that `graphs` makes. An optimizer step, which is another each
/// time, stays as it is.
std::unique_ptr<Stage> withGraphs(std::unique_ptr<Stage> stage,
                                  std::shared_ptr<Graphs> graphs);

/// How often a program's step has to be rehearsed until all is captured.
inline constexpr int kRehearsalsOfGraphs = 2;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_GRAPHEDSTAGE_H
