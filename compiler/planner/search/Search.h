//===- Search.h - Search for the best plans ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_SEARCH_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_SEARCH_H

#include "compiler/planner/search/Evaluate.h"

namespace chimera::plan {

/// Counts of the choices of one scheme, by outcome.
struct OutcomeCounts {
  const schedule::Scheme *scheme = nullptr;
  int64_t choices = 0;
  int64_t simulated = 0;
  int64_t ruledOut = 0; ///< because of a bound
  int64_t tooLarge = 0;
  int64_t impossible = 0;
  /// Among the choices that are too large, the one that needs the fewest bytes,
  /// and its name.
  std::optional<TooLarge> smallest;
  std::string smallestName;
  std::optional<Refusal> refusal; ///< of the first impossible choice
};

/// True if `a` is before `b` in a ranking: `a` has a shorter step, or the same
/// step time and less memory.
bool isFaster(const Proposal &a, const Proposal &b);

struct Answer {
  /// The fastest plans, fastest first. Plans with the same step time are
  /// ordered by memory, then by their position in the space. Different settings
  /// and schemes may make the same schedule. So of several plans with equal
  /// sizes, step time and memory, only the first is listed. Schedules of plans
  /// with one worker differ only in memory. So of such plans, only the first is
  /// listed, which needs the least memory.
  std::vector<Proposal> ranked;
  /// The fastest plan of each scheme that has a plan, fastest first.
  std::vector<Proposal> ofSchemes;
  /// All simulated plans, in the order of the space.
  std::vector<Proposal> simulated;
  std::vector<OutcomeCounts> outcomeCounts; ///< by scheme
};

struct SearchSettings {
  size_t planCount = 10; ///< the number of plans in `ranked`, at least 1
  /// True to also simulate each plan that needs less memory than every faster
  /// plan.
  bool keepParetoFront = false;
  uint32_t threads = 1;
  /// Called by one thread at a time, after every 64 choices and after the last.
  /// `done` is the number of evaluated choices. `best` is the shortest step so
  /// far in ns, 0 for none.
  std::function<void(size_t done, double best)> progress;
};

/// Evaluates the choices of a space. `ranked` and `ofSchemes` depend neither on
/// the number of threads nor on their speed. `simulated` and `outcomeCounts`
/// may: a choice that a fast thread evaluates may be ruled out by a bound in
/// another run.
Answer search(const Space &space, const Evaluator &evaluator,
              const SearchSettings &settings);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_SEARCH_H
