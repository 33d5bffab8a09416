//===- Results.h - What a run prints, logs and saves ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training takes long, and a disk may fill meanwhile. So nothing that cannot be
// written ends a run or keeps it from writing the rest: it is told when it
// fails, and in the process's status.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RESULTS_H
#define CHIMERA_TOOLS_RESULTS_H

#include "runtime/interpreter/Profile.h"
#include "runtime/train/Progress.h"
#include "runtime/train/RunOnHost.h"
#include "tools/Workload.h"

#include <nlohmann/json.hpp>

namespace chimera {

/// Prints what runs, unless it is to be quiet: its size, `where` its ranks
/// are, and what they have of this host.
void announce(const RunSettings &settings, const program::ProgramT &program,
              const Workload &load, const char *where,
              const runtime::HostShare &share);

/// What is known at the end, for people and for the log.
class Results {
public:
  /// The references must outlive this; a profile says what `computed`. Throws
  /// std::exception if the log cannot be written.
  Results(const RunSettings &settings, const program::ProgramT &program,
          const Workload &load, runtime::Computed computed);

  /// Throws std::runtime_error where the loss is no number and nothing is to be
  /// saved.
  void onStep(const runtime::StepEvent &event);

  /// Hears what the mean loss on held-out text is after so many steps.
  void onEvaluation(uint64_t step, double loss);

  /// Prints and saves, the weights first: what took longest to make. They go
  /// elsewhere (writeElsewhere) where they cannot be written to their file, and
  /// to lastFiniteOf that where the run did not end as it was asked to.
  void finish(const runtime::RunResult &result, nlohmann::json summary);

  /// Prints what the evaluation has found, and completes the log.
  void end();

  /// The process's: whether all of this worked.
  int exitStatus() const { return hasFailed; }

private:
  /// What it throws is a failure, and told.
  template <typename Action> void attempt(Action action);
  void tell(const std::string &failure);
  /// Returns where the bytes are; empty where they are lost.
  std::string save(const char *what, const std::string &file,
                   const std::vector<std::byte> &bytes);
  void saveLastFinite(const runtime::RunResult &result);
  void saveDocument(const std::string &file, const std::string &document);
  void compare();

  const RunSettings &settings;
  const program::ProgramT &program;
  const Workload &load;
  const runtime::Computed computed;
  runtime::Progress progress;
  std::optional<runtime::Loss> loss;
  std::optional<double> heldOut; ///< loss, at last
  nlohmann::json summary;
  bool hasFailed = false;
};

/// The ranks' use of memory and the runtime's own cost.
nlohmann::json summarize(const program::ProgramT &program,
                         const runtime::RunResult &result, uint32_t cores);

} // namespace chimera

#endif // CHIMERA_TOOLS_RESULTS_H
