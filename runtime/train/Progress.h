//===- Progress.h - Progress output and log of a run ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_PROGRESS_H
#define CHIMERA_RUNTIME_TRAIN_PROGRESS_H

#include "runtime/train/EventFile.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/TrainingRun.h"

#include <nlohmann/json_fwd.hpp>

namespace chimera::runtime {

/// "held-out loss 1.2345, accuracy 67.8 %".
std::string summaryOf(const EvaluationResult &result);

/// The progress of a run, on standard output and in a log. On a terminal, one
/// progress line is rewritten in place. If standard output is no terminal, a
/// line is written every few seconds, but none while a pipe is full. If a step
/// has no label that contributes to the loss, this is also reported, but only
/// for the first such step.
///
/// The log (a LogFile) has one JSON object per line for each step, each
/// evaluation and each checkpoint, and at the end one with the key "summary".
/// Steps count from 1. stepFields() are the fields of a step. Logged numbers
/// have enough digits to be read back exactly.
///
/// The same numbers of steps and evaluations are written to a file for
/// TensorBoard (EventFile).
class Progress {
public:
  struct Options {
    uint64_t steps = 0;         ///< of the training
    uint64_t tokensPerStep = 0; ///< 0 if samples have no tokens
    bool quiet = false;
    std::string logFile = {}; ///< empty if there is no log
    uint64_t firstStep = 0;   ///< number of steps before this run
    /// Whether an existing log continues: its lines of steps up to firstStep
    /// stay.
    bool resumes = false;
    uint64_t samplesPerStep = 0; ///< 0 if the program has no model
    /// Of the files for TensorBoard; empty if there are none.
    std::string eventFolder = {};
  };

  /// All functions throw std::runtime_error if a file cannot be written. After
  /// such an error, nothing more is written to this file, and later calls do
  /// not throw. An incomplete log keeps its temporary name.
  explicit Progress(const Options &options);
  /// Shows the step, then logs it.
  void step(const StepEvent &event);
  /// Logs the result on held-out data after this number of steps, unless an
  /// earlier run logged it. Also shows it, unless it is the last one of the
  /// run, which the caller shows.
  void evaluation(uint64_t steps, const EvaluationResult &result, bool isLast);
  /// Logs a checkpoint.
  void checkpoint(const CheckpointOutcome &outcome);
  /// Ends the progress line on a terminal, if there is one. Call it before
  /// anything else is printed.
  void endLine();
  /// Writes the summary and gives the log its final name. If the run had no
  /// step left, the log of an earlier run that ended stays as it is.
  void finish(const nlohmann::json &summary);

private:
  LogFile::Classify oldLines();
  void noteOldStep(uint64_t step);
  void write(const std::string &line, uint64_t step = 0,
             std::span<const Scalar> scalars = {});
  void show(const StepEvent &event, double perSecond);

  Options options;
  bool terminal;
  bool isLineOpen = false;
  bool hasToldOfNothing = false; ///< reported a step without labels
  bool hasOldEvaluation = false; ///< an earlier run logged one after firstStep
  uint64_t lastOldStep = 0;      ///< of the log that is continued; 0: none
  /// The first steps of which that log has no lines: the first and the last.
  std::optional<std::pair<uint64_t, uint64_t>> firstGap;
  std::optional<LogFile> log;
  std::optional<EventFile> events;
  double lastSeconds = 0;
  double lastShown = -1e9;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_PROGRESS_H
