//===- Registry.h - The schemes by name -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
#define CHIMERA_COMPILER_SCHEDULE_REGISTRY_H

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
  /// Empty if the scheme can do D and N, else what is possible instead.
  std::string (*check)(int32_t stages, int32_t microBatches);
  /// The pipelines with placement and share-out. Requires check to pass.
  std::vector<Pipeline> (*place)(int32_t stages, int32_t microBatches);
  /// The order of whole-backward actions for those pipelines.
  Schedule (*order)(const Problem &problem);
};

std::span<const Scheme> schemes();

/// Null if there is no scheme of that name.
const Scheme *findScheme(std::string_view name);

/// "chimera, gpipe, 1f1b".
std::string schemeNames();

/// The scheme's schedule of `problem`, backwards split if the problem says so.
/// Requires that the problem's pipelines are the scheme's.
Schedule makeSchedule(const Scheme &scheme, const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REGISTRY_H
