//===- Search.h - Search for the best plans ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_SEARCH_H
#define CHIMERA_COMPILER_PLAN_SEARCH_H

#include "compiler/plan/Evaluate.h"

namespace chimera::plan {

/// Counts of the choices of one scheme, by outcome.
struct OutcomeCounts {
  const schedule::Scheme *scheme = nullptr;
  int64_t choices = 0;
  int64_t simulated = 0;
  int64_t ruledOut = 0; ///< ruled out by a bound
  int64_t tooLarge = 0;
  int64_t impossible = 0;
  /// Of the choices that are too large, the one that needs the fewest bytes,
  /// and its name.
  std::optional<TooLarge> smallest;
  std::string smallestName;
  std::optional<Refusal> refusal; ///< of the first that is impossible
};

/// The order of a ranking: by step time, then by memory.
bool isFaster(const Proposal &a, const Proposal &b);

struct Answer {
  /// The fastest plans, fastest first. If two plans have the same step time and
  /// memory, the one that is earlier in the space comes first. Different
  /// settings and schemes may make the same schedule: of plans with equal
  /// sizes, step time and memory, only the first is listed. With one worker, a
  /// plan that differs only in memory is not listed either.
  std::vector<Proposal> ranked;
  /// The fastest plan of each scheme that has a plan, fastest first.
  std::vector<Proposal> ofSchemes;
  /// All simulated plans, in the order of the space.
  std::vector<Proposal> simulated;
  std::vector<OutcomeCounts> outcomeCounts; ///< by scheme
};

struct SearchSettings {
  size_t most = 10; ///< the number of plans in `ranked`, at least 1
  /// Also simulate plans that are slower but need less memory than every faster
  /// one.
  bool keepSmall = false;
  uint32_t threads = 1;
  /// Called by one thread at a time, now and then. `best` is the shortest step
  /// so far in ns, 0 for none.
  std::function<void(size_t done, double best)> progress;
};

/// Evaluates the choices of a space. The answer does not depend on the number
/// of threads or their speed. Only `simulated` and `outcomeCounts` may differ:
/// a bound may rule out a choice before it turns out to be too large or
/// impossible.
Answer search(const Space &space, const Evaluator &evaluator,
              const SearchSettings &settings);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_SEARCH_H
