//===- SideBySide.h - What was predicted beside what ran --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H
#define CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H

#include "compiler/schedule/timeline/Measured.h"

namespace chimera::schedule {

/// A timeline and a step of it that ran, to be shown together.
struct SideBySide {
  /// `clocked` is that of `timeline`, to which this refers.
  SideBySide(const Timeline &timeline, ClockedStep clocked, Measured run);
  SideBySide(const SideBySide &) = delete;

  const Timeline &timeline; ///< in the ticks of its problem
  ClockedStep clocked;
  Measured run;
  Timeline predicted, measured; ///< both in nanoseconds

  /// When the later of both is done, ns.
  int64_t end() const { return std::max(clocked.end(), run.end()); }
  /// "step 3 of copy 1, the slowest of 2".
  std::string nameOfRun() const;
  /// "step: 51 ms measured, 45.2 ms predicted, +12.8 %".
  std::string describeStep() const;
};

/// A table of workers, the largest differences of each kind, the step.
std::string renderTextBeside(const SideBySide &both);

/// For each worker a row that was predicted and, below it, one that ran, on one
/// axis; below them the largest differences.
std::string renderSvgBeside(const SideBySide &both);

/// Two processes, one predicted and one measured; the differences are in
/// `otherData`.
std::string renderChromeTraceBeside(const SideBySide &both);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H
