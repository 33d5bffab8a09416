//===- Search.h - The best plans of a space ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_SEARCH_H
#define CHIMERA_COMPILER_PLAN_SEARCH_H

#include "compiler/plan/Evaluate.h"

namespace chimera::plan {

/// What became of the choices of one scheme.
struct Tally {
  const schedule::Scheme *scheme = nullptr;
  int64_t choices = 0;
  int64_t simulated = 0;
  int64_t hopeless = 0; ///< by a bound
  int64_t tooLarge = 0;
  int64_t impossible = 0;
  /// Of those that are too large, what the smallest needs, and which it is.
  std::optional<TooLarge> smallest;
  std::string smallestName;
  std::optional<Refusal> refusal; ///< of the first that is impossible
};

/// Whether `a` comes before `b` in a ranking: of equal steps the smaller first.
bool isFaster(const Proposal &a, const Proposal &b);

struct Answer {
  /// The fastest, the first of equal ones in the order of the space, without
  /// those that take the same time and memory as one before of the same sizes:
  /// some settings and schemes make the same schedule.
  std::vector<Proposal> ranked;
  /// The fastest of each scheme that has one, fastest first.
  std::vector<Proposal> ofSchemes;
  /// All that were simulated, by the order of the space.
  std::vector<Proposal> simulated;
  std::vector<Tally> tallies; ///< of each scheme
};

struct SearchSettings {
  size_t most = 10; ///< of `ranked`, at least 1
  /// Also simulate what is slower, but takes less memory than anything faster.
  bool keepSmall = false;
  uint32_t threads = 1;
  /// Called by one thread at a time, now and then, with how many choices are
  /// done and the best step so far, ns, 0 for none.
  std::function<void(size_t done, double best)> progress;
};

/// The answer depends on neither threads nor their speed, but for what was
/// simulated and the tallies: a bound may rule a choice out before it is known
/// to be too large or impossible.
Answer search(const Space &space, const Evaluator &evaluator,
              const SearchSettings &settings);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_SEARCH_H
