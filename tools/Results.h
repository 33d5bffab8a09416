//===- Results.h - What a run prints, logs and saves ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RESULTS_H
#define CHIMERA_TOOLS_RESULTS_H

#include "runtime/core/Progress.h"
#include "tools/Workload.h"

#include <nlohmann/json.hpp>

namespace chimera {

/// What is known at the end, for people and for the log.
class Results {
public:
  /// The arguments must outlive this. Throws std::exception if the log cannot
  /// be written.
  Results(const RunSettings &settings, const program::ProgramT &program,
          const Workload &load);

  /// Throws std::runtime_error where the loss is no number.
  void onStep(const runtime::StepEvent &event);
  void finish(const std::vector<std::byte> &weights,
              const std::vector<std::byte> &gradients, uint64_t steps,
              double seconds, nlohmann::json summary);
  void saveProfile(const std::string &document);

private:
  void save(const std::string &file, const std::vector<std::byte> &bytes);

  const RunSettings &settings;
  const program::ProgramT &program;
  const Workload &load;
  runtime::Progress progress;
  std::optional<runtime::Loss> loss;
};

/// The ranks' use of memory and the runtime's own cost.
nlohmann::json summarize(const program::ProgramT &program,
                         const runtime::RunResult &result, uint32_t cores);

} // namespace chimera

#endif // CHIMERA_TOOLS_RESULTS_H
