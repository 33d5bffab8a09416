//===- Planner.cpp - A question answered by plans that compile ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/plan/Parallel.h"
#include "compiler/planner/Fitting.h"

#include <algorithm>

namespace chimera {

std::string PlannedAnswer::whyNone() const {
  if (!space.onlyReason.empty())
    return "no plan is possible: " + space.onlyReason;
  if (!passedOver.empty())
    return "no plan compiles, such as " + passedOver.front();
  if (!space.choices.empty() || !space.refusals.empty())
    return "no plan trains this model on this machine";
  return "no plan has all that is pinned: workers times copies are the "
         "devices, workers times stages a worker at most the layers, and "
         "copies times micro-batches times their size the mini-batch";
}

static std::vector<plan::Detail>
detailsOf(const plan::Evaluator &evaluator,
          const std::vector<plan::Proposal> &proposals, uint32_t threads) {
  std::vector<plan::Detail> details(proposals.size());
  plan::parallelFor(proposals.size(), threads, [&](size_t i) {
    details[i] = plan::detailOf(evaluator, proposals[i]);
  });
  return details;
}

namespace {

/// Searches spaces for the fastest plans that compile.
class FittingSearch {
public:
  FittingSearch(const plan::Question &question, PlanSubject subject,
                const plan::Evaluator &evaluator,
                const PlannerSettings &settings)
      : evaluator(evaluator), settings(settings),
        fitting(subject, question, evaluator) {}

  /// The fastest `number` plans of a space that fit, fastest first; fewer, but
  /// `needed` at least, where many do not. `answer` is that of the last search.
  std::vector<plan::Proposal> fastest(const plan::Space &space, size_t number,
                                      size_t needed, plan::Answer &answer) {
    plan::SearchSettings search;
    search.keepSmall = settings.keepSmall;
    search.threads = settings.threads;
    search.progress = [&](size_t done, double best) {
      if (settings.progress)
        settings.progress(done, space.choices.size(), best);
    };
    // Some more, in the place of those that do not fit.
    const size_t first = number + 10;
    for (search.most = first;; search.most *= 8) {
      answer = plan::search(space, evaluator, search);
      std::vector<plan::Proposal> ranked = answer.ranked;
      prepare(answer, number);
      fitting.keepFitting(ranked, number);
      if (answer.ranked.size() < search.most)
        return ranked; // nothing else is left
      // What the search left out is slower than the last that it has, and plans
      // that were changed to fit may be slower still.
      const double last = answer.ranked.back().step;
      while (!ranked.empty() && ranked.back().step > last)
        ranked.pop_back();
      if (ranked.size() == number ||
          (ranked.size() >= needed && search.most > first))
        return ranked;
    }
  }

  /// The fastest of each scheme that fit, fastest first, of a space whose
  /// fastest are `ranked` and whose search said `answer`.
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
      // A faster one may be missing there, as alike another scheme's.
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

  /// Leaves of the simulated plans those that fit, as far as that is known, and
  /// makes it known of all that no other beats in time and memory.
  void keepFitting(std::vector<plan::Proposal> &simulated) {
    std::vector<plan::Proposal> fits, open;
    for (plan::Proposal &proposal : simulated)
      (fitting.isKnown(proposal) ? fits : open).push_back(std::move(proposal));
    refit(fits);
    while (true) {
      // The front of both, of which the open ones are tried.
      std::ranges::sort(open, plan::isFaster);
      std::vector<plan::Proposal> tried, rest;
      int64_t smallest = INT64_MAX;
      for (plan::Proposal &proposal : open) {
        bool isBeaten = proposal.peakBytes >= smallest ||
                        std::ranges::any_of(fits, [&](const auto &fit) {
                          return fit.step <= proposal.step &&
                                 fit.peakBytes <= proposal.peakBytes;
                        });
        if (!isBeaten)
          smallest = proposal.peakBytes;
        (isBeaten ? rest : tried).push_back(std::move(proposal));
      }
      open = std::move(rest);
      if (tried.empty())
        break;
      fitting.prepare(tried, compilers(), settings.compiling);
      refit(tried);
      fits.insert(fits.end(), tried.begin(), tried.end());
    }
    simulated = std::move(fits);
    simulated.insert(simulated.end(), open.begin(), open.end());
  }

  const std::vector<std::string> &passedOver() const {
    return fitting.passedOver();
  }

private:
  /// A program of a million actions takes a gigabyte or so.
  uint32_t compilers() const { return std::min(settings.threads, 4u); }

  /// Compiles what will be asked for of an answer.
  void prepare(const plan::Answer &answer, size_t number) {
    std::vector<plan::Proposal> wanted = answer.ofSchemes;
    wanted.insert(wanted.end(), answer.ranked.begin(),
                  answer.ranked.begin() +
                      std::min(number, answer.ranked.size()));
    fitting.prepare(wanted, compilers(), settings.compiling);
  }

  /// The fastest plan that fits of the scheme whose fastest is `best`, none
  /// where none of many can be made to fit. Where it had to be changed, others
  /// of the scheme may be faster than it is now.
  std::optional<plan::Proposal> fastestLike(const plan::Space &space,
                                            const plan::Proposal &best) {
    std::optional<plan::Proposal> fit = fitting.fit(best);
    if (fit && fit->step <= best.step)
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
      if (std::optional<plan::Proposal> fit = fitting.fit(proposal))
        fits.push_back(std::move(*fit));
    proposals = std::move(fits);
  }

  const plan::Evaluator &evaluator;
  const PlannerSettings &settings;
  Fitting fitting;
};

} // namespace

PlannedAnswer answerOf(const plan::Question &question, PlanSubject subject,
                       const PlannerSettings &settings) {
  PlannedAnswer planned;
  planned.space = plan::spaceOf(question);
  plan::Evaluator evaluator(question);
  FittingSearch search(question, subject, evaluator, settings);
  plan::Answer &answer = planned.answer;
  // A plan that was changed to fit may even be faster than it was, if another
  // cut of the model is. Some are always tried, so that the first plans are the
  // same however many are shown.
  answer.ranked =
      search.fastest(planned.space, std::max<size_t>(settings.shown, 10),
                     settings.needed, answer);
  answer.ofSchemes =
      search.fastestOfSchemes(planned.space, answer, answer.ranked);
  answer.ranked.resize(std::min(answer.ranked.size(), settings.shown));
  if (settings.keepSmall)
    search.keepFitting(answer.simulated);
  planned.ranked = detailsOf(evaluator, answer.ranked, settings.threads);
  planned.ofSchemes = detailsOf(evaluator, answer.ofSchemes, settings.threads);
  planned.passedOver = search.passedOver();
  return planned;
}

} // namespace chimera
