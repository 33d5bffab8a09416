//===- Pins.h - What a person decides about a plan --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is pinned is not searched: a plan has one of the values that a person
// lists.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_PINS_H
#define CHIMERA_COMPILER_PLAN_PINS_H

#include "compiler/schedule/AllReduce.h"
#include "compiler/schedule/Registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace chimera::plan {

/// Which stages may be recomputed.
enum class Recomputation : uint8_t {
  Least, ///< as few as it takes to fit into the memory
  None,
  All,
  Fused, ///< all, inside of backwards (schedule::Recompute::Fused)
};

/// A scheme, and which of its settings may be tried: options that are open
/// (schedule::kBest) may have any value.
struct PinnedScheme {
  const schedule::Scheme *scheme;
  schedule::Options options;
};

/// `scheme` with all options open.
PinnedScheme withAnyOptions(const schedule::Scheme &scheme);

/// Adds to `schemes` those that `text` lists, as plans are named and as
/// pipelines describe them: "1f1b, chimera {pipelines = 4}" and
/// "chimera, {concatenation = halving}". Options that are not named are open.
/// Empty if that worked, else what was expected instead.
std::string readSchemes(std::string_view text,
                        std::vector<PinnedScheme> &schemes);

/// What a person has decided. An empty list leaves the matter open.
struct Pins {
  std::vector<PinnedScheme> schemes; ///< may have a scheme several times
  /// Also schemes without a flush, where none is named.
  bool withoutFlush = false;
  std::vector<int32_t> workers; ///< D
  std::vector<int32_t> copies;  ///< W
  std::vector<int32_t> stagesPerWorker;
  std::vector<int32_t> microBatches;    ///< N
  std::vector<int32_t> microBatchSizes; ///< B
  std::vector<bool> splits;             ///< whole backwards, split ones
  std::vector<schedule::AllReducePolicy> policies;
  Recomputation recomputation = Recomputation::Least;
  int64_t bucketBytes = 0; ///< as Workload's
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_PINS_H
