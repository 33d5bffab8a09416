//===- Results.h - Output of a run ------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training takes long, and a disk may fill up meanwhile. So if a file cannot be
// written, the run continues and writes the other files. The failure is
// reported when it happens, and the exit status of the process is 1.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RESULTS_H
#define CHIMERA_TOOLS_RESULTS_H

#include "runtime/interpreter/EarlierRuns.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/train/Progress.h"
#include "runtime/train/RunOnHost.h"
#include "tools/Workload.h"

#include <nlohmann/json.hpp>

namespace chimera {

/// Prints, logs and saves the results of a run.
class Results {
public:
  /// The references must outlive this object. `conditions` describes the
  /// hardware for the profile and the trace. Throws std::exception if the log
  /// cannot be opened, or if the run resumes and cannot continue an existing
  /// trace or profile.
  Results(const RunSettings &settings, const program::ProgramT &program,
          const Workload &load, runtime::RunConditions conditions);

  /// Logs a step, and reports it if --skip-nonfinite left it out. Throws
  /// std::runtime_error if its loss or the norm of its gradients is not finite,
  /// and none of --save, --checkpoint and --skip-nonfinite is given.
  void onStep(const runtime::StepEvent &event);

  /// Reports a checkpoint, or why it was not written. The run then continues
  /// and fails at its end.
  void onCheckpoint(const runtime::CheckpointOutcome &outcome);

  /// Logs the result on held-out data after `step` steps.
  void onEvaluation(uint64_t step, const runtime::EvaluationResult &result);

  /// Prints the results and saves the files. Saves the weights first, because
  /// they took longest to compute. If their file cannot be written, saves them
  /// in another folder (writeFallback). If the run diverged, or if a signal
  /// ended it and it writes no checkpoint, saves the last finite weights
  /// (lastFiniteFile).
  void finish(const runtime::RunResult &result, nlohmann::json summary);

  /// Prints the result of the evaluation after the last step, if there was one,
  /// and completes the log.
  void completeLog();

  /// The exit status of the process: 1 if something could not be written, or if
  /// the run diverged; else 0. Of checkpoints only the last one counts, because
  /// a run continues from it.
  int exitStatus() const { return hasFailed || hasCheckpointFault; }

private:
  /// Runs `action`. If it throws, reports the failure.
  template <typename Action> void attempt(Action action);
  void printError(const std::string &failure);
  void reportError(const std::string &failure);
  /// Saves `bytes`, which are weights or gradients, in `file` or, if `file`
  /// cannot be written, in another folder. Returns the path of the written
  /// file. It is empty if `file` is empty or if the bytes are lost.
  std::string save(const char *what, const std::string &file,
                   const std::vector<std::byte> &bytes);
  bool hasArrays() const; ///< whether the run trains on arrays
  void reportSkipped(uint64_t step);
  void saveLastFinite(const runtime::RunResult &result);
  std::string saveLastFiniteWeights(const runtime::RunResult &result);
  void saveDocument(const std::string &file, const std::string &document);
  void printHeldOut();
  void saveProfile(const runtime::RunResult &result);
  void saveTrace(const runtime::RunResult &result);

  const RunSettings &settings;
  const program::ProgramT &program;
  const Workload &load;
  const runtime::RunConditions conditions;
  runtime::Progress progress;
  std::optional<runtime::Loss> loss;
  std::string lastCheckpoint; ///< its folder; empty if there is none
  runtime::EarlierTrace earlierTrace;
  std::vector<std::string> earlierProfiles;
  std::optional<runtime::EvaluationResult> heldOut; ///< the last one
  uint64_t heldOutAfter = 0;                        ///< its number of steps
  /// The end of the steps.
  struct End {
    uint64_t steps; ///< of the training
    bool isRegular; ///< RunResult::endedRegularly
  };
  std::optional<End> end; ///< none while steps run
  uint64_t skipped = 0;   ///< steps that were left out
  nlohmann::json summary;
  bool hasFailed = false;
  bool hasCheckpointFault = false; ///< of the last checkpoint
};

/// The memory that each rank used, and the core time per instruction if the
/// ranks ran on `cores` cores.
nlohmann::json summarize(const program::ProgramT &program,
                         const runtime::RunResult &result, uint32_t cores);

} // namespace chimera

#endif // CHIMERA_TOOLS_RESULTS_H
