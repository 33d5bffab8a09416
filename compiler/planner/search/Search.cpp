//===- Search.cpp - Search for the best plans -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Search.h"

#include "compiler/planner/search/Parallel.h"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace chimera::plan {

namespace {

/// The state of a search, shared by its threads.
class SearchState {
public:
  SearchState(const Space &space, const SearchSettings &settings)
      : settings(settings), outcomes(space.choices.size()) {}

  /// True if a choice of `scheme` cannot be in the answer if its step takes at
  /// least `bound` and its memory is at least `peakBytes`. This is so if
  /// `settings.planCount` known step times are shorter than `bound`, and the
  /// best known plan of `scheme` is faster than `bound`. If `keepParetoFront`
  /// is set, some known plan must also be faster than `bound` and need at most
  /// `peakBytes`.
  bool canRuleOut(const schedule::Scheme *scheme, double bound,
                  int64_t peakBytes) {
    std::lock_guard lock(mutex);
    auto best = bestOf.find(scheme);
    return steps.size() == settings.planCount && bound > steps.back() &&
           best != bestOf.end() && bound > best->second &&
           (!settings.keepParetoFront ||
            std::ranges::any_of(front, [&](const auto &known) {
              return known.first < bound && known.second <= peakBytes;
            }));
  }

  void add(size_t index, Outcome outcome) {
    std::lock_guard lock(mutex);
    if (const auto *proposal = std::get_if<Proposal>(&outcome))
      addStep(*proposal);
    outcomes[index] = std::move(outcome);
    if (settings.progress && (++done % 64 == 0 || done == outcomes.size()))
      settings.progress(done, steps.empty() ? 0 : steps.front());
  }

  std::vector<Outcome> take() { return std::move(outcomes); }

private:
  void addStep(const Proposal &proposal) {
    double step = proposal.stepTime;
    auto [best, isNew] = bestOf.emplace(proposal.choice.scheme, step);
    best->second = std::min(best->second, step);
    // Store equal step times only once, because the ranking may drop plans with
    // the same time as duplicates. If each of them were stored, plans that
    // belong to the answer could be ruled out.
    auto place = std::ranges::lower_bound(steps, step);
    if (place == steps.end() || *place != step)
      steps.insert(place, step);
    if (steps.size() > settings.planCount)
      steps.pop_back();
    if (settings.keepParetoFront)
      front.emplace_back(step, proposal.peakBytes);
  }

  const SearchSettings &settings;
  std::mutex mutex;
  std::vector<Outcome> outcomes;
  std::vector<double> steps; ///< the shortest distinct step times, ascending
  std::map<const schedule::Scheme *, double> bestOf;
  std::vector<std::pair<double, int64_t>>
      front; ///< step times and peak bytes of known plans
  size_t done = 0;
};

/// The indices of the choices, ordered by estimated time. If the choices that
/// are probably fastest are evaluated first, their step times rule out most of
/// the other choices.
std::vector<size_t> promisingFirst(const Space &space,
                                   const Evaluator &evaluator) {
  std::vector<double> estimates;
  for (const Choice &choice : space.choices)
    estimates.push_back(evaluator.estimateStep(choice));
  std::vector<size_t> order(space.choices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return estimates[i]; });
  return order;
}

/// True if the ranking lists only the first of the plans `a` and `b`. If there
/// is one worker, there is no pipeline. Schedules then differ only in memory,
/// and the plan that needs the least memory is first.
bool areAlike(const Proposal &a, const Proposal &b) {
  return a.choice.workers == b.choice.workers &&
         a.choice.stages == b.choice.stages &&
         a.choice.microBatchSize == b.choice.microBatchSize &&
         a.stepTime == b.stepTime &&
         (a.peakBytes == b.peakBytes || a.choice.workers == 1);
}

void count(OutcomeCounts &counts, const Choice &choice,
           const Outcome &outcome) {
  ++counts.choices;
  if (std::holds_alternative<Proposal>(outcome)) {
    ++counts.simulated;
  } else if (std::holds_alternative<RuledOut>(outcome)) {
    ++counts.ruledOut;
  } else if (const auto *large = std::get_if<TooLarge>(&outcome)) {
    ++counts.tooLarge;
    if (!counts.smallest || large->peakBytes < counts.smallest->peakBytes) {
      counts.smallest = *large;
      counts.smallestName = nameOf(choice);
    }
  } else {
    ++counts.impossible;
    if (!counts.refusal)
      counts.refusal =
          Refusal{nameOf(choice), std::get<Impossible>(outcome).reason};
  }
}

Answer answerOf(const Space &space, std::vector<Outcome> outcomes,
                size_t most) {
  Answer answer;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Choice &choice = space.choices[i];
    if (answer.outcomeCounts.empty() ||
        answer.outcomeCounts.back().scheme != choice.scheme)
      answer.outcomeCounts.emplace_back().scheme = choice.scheme;
    count(answer.outcomeCounts.back(), choice, outcomes[i]);
    if (auto *proposal = std::get_if<Proposal>(&outcomes[i]))
      answer.simulated.push_back(std::move(*proposal));
  }
  std::vector<Proposal> sorted = answer.simulated;
  std::ranges::stable_sort(sorted, isFaster);
  for (const Proposal &proposal : sorted) {
    auto isLike = [&](const Proposal &other) {
      return areAlike(proposal, other);
    };
    if (answer.ranked.size() < most &&
        std::ranges::none_of(answer.ranked, isLike))
      answer.ranked.push_back(proposal);
    auto isOfScheme = [&](const Proposal &other) {
      return other.choice.scheme == proposal.choice.scheme;
    };
    if (std::ranges::none_of(answer.ofSchemes, isOfScheme))
      answer.ofSchemes.push_back(proposal);
  }
  return answer;
}

} // namespace

bool isFaster(const Proposal &a, const Proposal &b) {
  return std::pair(a.stepTime, a.peakBytes) <
         std::pair(b.stepTime, b.peakBytes);
}

Answer search(const Space &space, const Evaluator &evaluator,
              const SearchSettings &settings) {
  SearchState state(space, settings);
  std::vector<size_t> order = promisingFirst(space, evaluator);
  parallelFor(order.size(), settings.threads, [&](size_t i) {
    const Choice &choice = space.choices[order[i]];
    state.add(order[i],
              evaluator.evaluate(choice, [&](double bound, int64_t peakBytes) {
                return state.canRuleOut(choice.scheme, bound, peakBytes);
              }));
  });
  return answerOf(space, state.take(), settings.planCount);
}

} // namespace chimera::plan
