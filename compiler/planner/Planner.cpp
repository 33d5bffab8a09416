//===- Planner.cpp - Answers a question with plans that compile -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/planner/PlanFitter.h"
#include "compiler/planner/search/Parallel.h"

#include <algorithm>

namespace chimera {

std::string PlannerResult::noPlanReason() const {
  if (!space.onlyReason.empty())
    return "no plan is possible: " + space.onlyReason;
  if (!rejectedPlans.empty())
    return "no plan compiles, such as " + rejectedPlans.front();
  if (!space.choices.empty() || !space.refusals.empty())
    return "no plan trains this model on this machine";
  return "no plan has all values that options fix. Required: workers x copies "
         "= devices; workers x stages per worker <= layers; copies x "
         "micro-batches x micro-batch size = mini-batch";
}

static std::vector<plan::StepBreakdown>
breakdownsOf(const plan::Evaluator &evaluator,
             const std::vector<plan::Proposal> &proposals, uint32_t threads) {
  std::vector<plan::StepBreakdown> breakdowns(proposals.size());
  plan::parallelFor(proposals.size(), threads, [&](size_t i) {
    breakdowns[i] = plan::breakdownOf(evaluator, proposals[i]);
  });
  return breakdowns;
}

namespace {

/// Searches for the fastest plans that compile.
class FittingSearch {
public:
  FittingSearch(const plan::Question &question, PlannerOps ops,
                const plan::Evaluator &evaluator,
                const PlannerSettings &settings)
      : evaluator(evaluator), settings(settings),
        fitter(ops, question, evaluator) {}

  /// The fastest `number` plans of a space that fit, fastest first. If many
  /// plans do not fit, there may be fewer than `number`, but at least `needed`
  /// if they exist. Sets `answer` to the answer of the last search.
  std::vector<plan::Proposal> fastest(const plan::Space &space, size_t number,
                                      size_t needed, plan::Answer &answer) {
    plan::SearchSettings search;
    search.keepParetoFront = settings.keepParetoFront;
    search.threads = settings.threads;
    search.progress = [&](size_t done, double best) {
      if (settings.progress)
        settings.progress(done, space.choices.size(), best);
    };
    // Ask the search for more plans than needed. The extra plans replace plans
    // that do not fit.
    const size_t first = number + 10;
    for (search.planCount = first;; search.planCount *= 8) {
      answer = plan::search(space, evaluator, search);
      std::vector<plan::Proposal> ranked = answer.ranked;
      prepare(answer, number);
      fitter.keepFitting(ranked, number);
      if (answer.ranked.size() < search.planCount)
        return ranked; // the search left out no other plan
      // Plans that the search left out are slower than the last plan of its
      // answer. A plan that was changed to fit may be slower than this last
      // plan. Drop such a plan, because a plan that was left out may be faster.
      const double last = answer.ranked.back().stepTime;
      while (!ranked.empty() && ranked.back().stepTime > last)
        ranked.pop_back();
      if (ranked.size() == number ||
          (ranked.size() >= needed && search.planCount > first))
        return ranked;
    }
  }

  /// The fastest plan of each scheme that fits, fastest first. `answer` is the
  /// answer of the search. `ranked` has the fastest plans of the whole space
  /// that fit.
  std::vector<plan::Proposal>
  fastestOfSchemes(const plan::Space &space, const plan::Answer &answer,
                   const std::vector<plan::Proposal> &ranked) {
    std::vector<plan::Proposal> all;
    for (const plan::Proposal &best : answer.ofSchemes) {
      auto isOfScheme = [&](const plan::Proposal &proposal) {
        return proposal.choice.scheme == best.choice.scheme;
      };
      std::optional<plan::Proposal> fastest;
      if (auto known = std::ranges::find_if(ranked, isOfScheme);
          known != ranked.end())
        fastest = *known;
      // If plans of several schemes are equal, the ranking lists only one of
      // them. So the scheme of `best` may have a faster plan than its fastest
      // plan in `ranked`.
      if (!fastest || plan::isFaster(best, *fastest))
        if (std::optional<plan::Proposal> fit = fastestLike(space, best);
            fit && (!fastest || plan::isFaster(*fit, *fastest)))
          fastest = std::move(fit);
      if (fastest)
        all.push_back(std::move(*fastest));
    }
    std::ranges::stable_sort(all, plan::isFaster);
    return all;
  }

  /// Removes simulated plans that are known not to fit. Every plan on the
  /// Pareto front of time and memory is compiled to find out whether it fits.
  /// For other plans this may stay unknown; they are kept.
  void keepFitting(std::vector<plan::Proposal> &simulated) {
    std::vector<plan::Proposal> fits, open;
    for (plan::Proposal &proposal : simulated)
      (fitter.isKnown(proposal) ? fits : open).push_back(std::move(proposal));
    refit(fits);
    while (true) {
      // The plans in `open` have not been compiled, so it is not known whether
      // they fit. Compile the plans of `open` that are on the Pareto front of
      // `fits` and `open` together.
      std::ranges::sort(open, plan::isFaster);
      std::vector<plan::Proposal> tried, rest;
      int64_t smallest = INT64_MAX;
      for (plan::Proposal &proposal : open) {
        bool isBeaten = proposal.peakBytes >= smallest ||
                        std::ranges::any_of(fits, [&](const auto &fit) {
                          return fit.stepTime <= proposal.stepTime &&
                                 fit.peakBytes <= proposal.peakBytes;
                        });
        if (!isBeaten)
          smallest = proposal.peakBytes;
        (isBeaten ? rest : tried).push_back(std::move(proposal));
      }
      open = std::move(rest);
      if (tried.empty())
        break;
      fitter.prepare(tried, compilers(), settings.compiling);
      refit(tried);
      fits.insert(fits.end(), tried.begin(), tried.end());
    }
    simulated = std::move(fits);
    simulated.insert(simulated.end(), open.begin(), open.end());
  }

  const std::vector<std::string> &rejectedPlans() const {
    return fitter.rejectedPlans();
  }

private:
  /// Limits the concurrent compilations, because a program of a million actions
  /// needs about a gigabyte of memory.
  uint32_t compilers() const { return std::min(settings.threads, 4u); }

  /// Compiles in advance the fastest plan of each scheme and the first `number`
  /// plans of the ranking.
  void prepare(const plan::Answer &answer, size_t number) {
    std::vector<plan::Proposal> wanted = answer.ofSchemes;
    wanted.insert(wanted.end(), answer.ranked.begin(),
                  answer.ranked.begin() +
                      std::min(number, answer.ranked.size()));
    fitter.prepare(wanted, compilers(), settings.compiling);
  }

  /// The fastest plan that fits, of the scheme of `best`. `best` is the fastest
  /// plan of this scheme, but may not fit. If it fits as it is, returns `best`.
  /// If it does not fit, or fits only after a change that makes it slower,
  /// other plans of the scheme may be faster. So searches all plans of the
  /// scheme, up to a limit. If this search finds none, returns the changed
  /// `best`, or nothing if `best` cannot be made to fit.
  std::optional<plan::Proposal> fastestLike(const plan::Space &space,
                                            const plan::Proposal &best) {
    std::optional<plan::Proposal> fit = fitter.findFittingPlan(best);
    if (fit && fit->stepTime <= best.stepTime)
      return fit;
    plan::Space ofScheme;
    for (const plan::Choice &choice : space.choices)
      if (choice.scheme == best.choice.scheme)
        ofScheme.choices.push_back(choice);
    plan::Answer answer;
    std::vector<plan::Proposal> fits = fastest(ofScheme, 1, 0, answer);
    return fits.empty() ? fit : fits.front();
  }

  void refit(std::vector<plan::Proposal> &proposals) {
    std::vector<plan::Proposal> fits;
    for (const plan::Proposal &proposal : proposals)
      if (std::optional<plan::Proposal> fit = fitter.findFittingPlan(proposal))
        fits.push_back(std::move(*fit));
    proposals = std::move(fits);
  }

  const plan::Evaluator &evaluator;
  const PlannerSettings &settings;
  PlanFitter fitter;
};

} // namespace

PlannerResult makePlans(const plan::Question &question, PlannerOps ops,
                        const PlannerSettings &settings) {
  PlannerResult result;
  result.space = plan::spaceOf(question);
  plan::Evaluator evaluator(question);
  FittingSearch search(question, ops, evaluator, settings);
  plan::Answer &answer = result.answer;
  // Try at least ten plans, even if fewer are shown. A plan that is changed to
  // fit may become faster than before, if the new cut of the model is better.
  // So the first plans could otherwise depend on how many are shown.
  answer.ranked =
      search.fastest(result.space, std::max<size_t>(settings.planCount, 10),
                     settings.needed, answer);
  answer.ofSchemes =
      search.fastestOfSchemes(result.space, answer, answer.ranked);
  answer.ranked.resize(std::min(answer.ranked.size(), settings.planCount));
  if (settings.keepParetoFront)
    search.keepFitting(answer.simulated);
  result.ranked = breakdownsOf(evaluator, answer.ranked, settings.threads);
  result.ofSchemes =
      breakdownsOf(evaluator, answer.ofSchemes, settings.threads);
  result.rejectedPlans = search.rejectedPlans();
  return result;
}

} // namespace chimera
