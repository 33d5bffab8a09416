//===- EarlierRuns.h - Traces and profiles of earlier runs ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run that resumes from a checkpoint continues the trace and the profile of
// the runs before it. The entries of an earlier run about steps after
// the checkpoint are dropped, because these steps run again.
//
// Runs may differ in their schedule, their workers and their clocks. So their
// events and durations are never merged: in a trace, each run has processes of
// its own, and a profile has a list of the profiles of earlier runs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_EARLIERRUNS_H
#define CHIMERA_RUNTIME_INTERPRETER_EARLIERRUNS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::runtime {

/// The runs whose events a trace has already.
struct EarlierTrace {
  struct Run {
    uint64_t firstStep, steps; ///< traced steps, from 1, and their number
    uint64_t firstProcess;     ///< of copy 0; the other copies follow
  };
  std::vector<Run> runs;  ///< oldest first
  std::string events;     ///< their lines, without a separator at the end
  uint64_t processes = 0; ///< number of their processes
  uint64_t arrows = 0;    ///< no arrow has this id or a larger one
  double end = 0;         ///< of the last event, in microseconds
};

/// Reads the trace `text`, as formatTrace writes it. Drops each run with a step
/// after the first `steps` steps, and all runs after such a run. Throws
/// std::runtime_error if the text is not such a trace.
EarlierTrace parseEarlierTrace(std::string_view text, uint64_t steps);

/// Reads the profile `text`, as formatProfile writes it. Returns the profiles
/// of the runs in it as JSON, oldest first, without those of steps after the
/// first `steps` steps. Throws std::runtime_error if the text is not such a
/// profile.
std::vector<std::string> parseEarlierProfiles(std::string_view text,
                                              uint64_t steps);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_EARLIERRUNS_H
