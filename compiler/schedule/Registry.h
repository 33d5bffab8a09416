//===- Registry.h - The schemes by name -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
#define CHIMERA_COMPILER_SCHEDULE_REGISTRY_H

#include "compiler/schedule/Options.h"
#include "compiler/schedule/Schedule.h"

#include <span>
#include <string_view>

namespace chimera::schedule {

/// A family of schedules. Parser, help text and tests all walk `schemes()`.
struct Scheme {
  const char *name;
  const char *summary;
  /// The conditions on D (stages and workers) and N (micro-batches), in words.
  const char *needs;
  /// The options that the scheme knows, by name; it ignores all others.
  std::span<const std::string_view> options;
  /// Empty if the scheme can do D and N so, else what is possible instead.
  /// Requires D and N of at least 1.
  std::string (*check)(int32_t stages, int32_t microBatches,
                       const SchemeOptions &options);
  /// The pipelines with placement and share-out, all of them with
  /// micro-batches. Requires check to pass.
  std::vector<Pipeline> (*place)(int32_t stages, int32_t microBatches,
                                 const SchemeOptions &options);
  /// The order of whole-backward actions for those pipelines.
  Schedule (*order)(const Problem &problem, const SchemeOptions &options);
  /// What a user should know about this choice, or empty: a scheme that is
  /// valid but that something simpler beats. Requires check to pass.
  std::string (*note)(int32_t stages, int32_t microBatches,
                      const SchemeOptions &options);
  /// When weights change. Problems of the scheme say so too; without a flush
  /// they have two steps.
  Updates updates = Updates::Flush;
};

std::span<const Scheme> schemes();

/// Null if there is no scheme of that name.
const Scheme *findScheme(std::string_view name);

/// "chimera, gpipe, 1f1b, gems, …".
std::string schemeNames();

/// A line for each scheme and, indented, for each option it knows.
std::string schemeHelp();

/// Sets the option `name` from `value`. Empty if that worked, else what is
/// possible: an option that `scheme` does not know, a value that no scheme
/// takes. Whether the value is possible for D and N, Scheme::check says.
std::string setOption(const Scheme &scheme, std::string_view name,
                      std::string_view value, SchemeOptions &options);

/// Empty if `scheme` can schedule `problem`: it can do these sizes, and the
/// pipelines are its own. Else what it expects.
std::string checkPipelines(const Scheme &scheme, const Problem &problem,
                           const SchemeOptions &options = {});

/// The scheme's schedule of `problem`, backwards split if the problem says so;
/// without recomputes, which insertRecompute adds.
/// Requires checkPipelines with the same options to pass.
Schedule makeSchedule(const Scheme &scheme, const Problem &problem,
                      const SchemeOptions &options = {});

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
