//===- Pins.h - Choices that the user fixes ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The user may fix ("pin") parts of a plan by lists of allowed values. The
// planner then tries only these values.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_PINS_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_PINS_H

#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/simulate/AllReduce.h"

#include <string>
#include <string_view>
#include <vector>

namespace chimera::plan {

/// Which stages may be recomputed.
enum class Recomputation : uint8_t {
  Least, ///< as few as needed to fit into the memory
  None,
  All,
  Fused, ///< all, within their backwards (schedule::Recompute::Fused)
};

/// A scheme and its options. If an option is open (schedule::kBest), the
/// planner tries all its values.
struct SchemeWithOptions {
  const schedule::Scheme *scheme;
  schedule::Options options;
};

/// `scheme` with all options open.
SchemeWithOptions withAnyOptions(const schedule::Scheme &scheme);

/// Reads the schemes in `text` and adds them to `schemes`. Accepts the notation
/// of plan names, such as "1f1b, chimera {pipelines = 4}", and the notation of
/// chimera.pipeline, such as "chimera, {concatenation = halving}". Options that
/// are not named are open. Returns an empty text, or an error if `text` is not
/// valid.
std::string readSchemes(std::string_view text,
                        std::vector<SchemeWithOptions> &schemes);

/// The parts of a plan that the user fixes. If a list is empty, the planner
/// tries all values.
struct Pins {
  /// May contain a scheme several times.
  std::vector<SchemeWithOptions> schemes;
  /// True to include schemes without a flush, if no scheme is named.
  bool withoutFlush = false;
  std::vector<int32_t> workers; ///< D
  std::vector<int32_t> copies;  ///< W
  std::vector<int32_t> stagesPerWorker;
  std::vector<int32_t> microBatches;    ///< N
  std::vector<int32_t> microBatchSizes; ///< B
  std::vector<bool> splitBackward;      ///< true: split backwards
  std::vector<schedule::AllReducePolicy> policies;
  Recomputation recomputation = Recomputation::Least;
  int64_t bucketBytes = 0; ///< as in schedule::Workload
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_PINS_H
