//===- Progress.h - Progress output and log of a run ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_PROGRESS_H
#define CHIMERA_RUNTIME_TRAIN_PROGRESS_H

#include "runtime/train/LogFile.h"
#include "runtime/train/Run.h"

#include <nlohmann/json_fwd.hpp>

namespace chimera::runtime {

/// The output of a run's progress. On standard output it is a progress line,
/// rewritten in place on a terminal; elsewhere a line every few seconds, and
/// none while a pipe is full. It also reports, once, that no label of a step
/// counts.
///
/// The log (a LogFile) has one JSON object per line for each step and each
/// evaluation, and at the end one with the key "summary". Steps count from 1.
/// Logged numbers have enough digits to be read back exactly.
class Progress {
public:
  struct Options {
    uint64_t steps = 0;
    uint64_t tokensPerStep = 0; ///< 0 if the program has no model
    bool quiet = false;
    std::string logFile; ///< empty for none
  };

  /// Throws std::runtime_error if the log cannot be written, like the other
  /// functions. The log is then given up: the incomplete file keeps its name,
  /// and later calls do not report it again.
  explicit Progress(const Options &options);
  /// Shows the step, then logs it.
  void step(const StepEvent &event);
  /// Logs a loss on held-out data after this number of steps. Also shows it,
  /// except at the end of the run.
  void evaluation(uint64_t steps, double loss);
  /// Ends the progress line on a terminal, if there is one. Call it before
  /// anything else is printed.
  void endLine();
  /// Writes the summary and gives the log its final name.
  void finish(const nlohmann::json &summary);

private:
  void append(const std::string &line);
  void show(const StepEvent &event, double perSecond);

  Options options;
  bool terminal;
  bool isLineOpen = false;
  bool hasToldOfNothing = false; ///< that no label of a step counts
  std::optional<LogFile> log;
  double lastSeconds = 0;
  double lastShown = -1e9;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_PROGRESS_H
