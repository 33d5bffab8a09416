//===- Progress.h - What a run shows and logs -------------------*- C++ -*-===//
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

/// The progress line on standard output (one line rewritten on a terminal, else
/// a line now and then, and none where nobody reads them), once that a step has
/// no label that counts, and the log: a JSON
/// object a line for each step and each evaluation, at the end one with the key
/// "summary". Steps
/// count from 1. Numbers are logged so that they read back to the last bit.
///
/// The log is a LogFile.
class Progress {
public:
  struct Options {
    uint64_t steps = 0;
    uint64_t tokensPerStep = 0; ///< 0: the program has no model
    bool quiet = false;
    std::string logFile; ///< empty for none
  };

  /// Throws std::runtime_error, like the others, if the log cannot be written.
  /// It is then given up: what is left is named no more and nobody is told
  /// again.
  explicit Progress(const Options &options);
  /// Shows the step, and then logs it.
  void step(const StepEvent &event);
  /// Shows, unless it is the run's last word, and logs a loss on held-out data
  /// after so many steps.
  void evaluation(uint64_t steps, double loss);
  /// Ends the line that is rewritten on a terminal, if there is one: to be
  /// called before anything else is printed.
  void endLine();
  /// Writes the summary and names the log.
  void finish(const nlohmann::json &summary);

private:
  void append(const std::string &line);
  void show(const StepEvent &event, double perSecond);

  Options options;
  bool terminal;
  bool isLineOpen = false;
  bool hasToldOfNothing = false; ///< that counts in a step
  std::optional<LogFile> log;
  double lastSeconds = 0;
  double lastShown = -1e9;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_PROGRESS_H
