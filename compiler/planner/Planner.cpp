//===- Planner.cpp - A question answered by plans that compile ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/plan/Parallel.h"
#include "compiler/planner/Fitting.h"

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

PlannedAnswer answerOf(const plan::Question &question, PlanSubject subject,
                       const PlannerSettings &settings) {
  PlannedAnswer planned;
  planned.space = plan::spaceOf(question);
  const plan::Space &space = planned.space;
  plan::Evaluator evaluator(question, space);
  plan::SearchSettings search;
  // Some more, in the place of those that do not compile.
  search.most = settings.shown + 10;
  search.keepSmall = settings.keepSmall;
  search.threads = settings.threads;
  search.progress = [&](size_t done, double best) {
    if (settings.progress)
      settings.progress(done, space.choices.size(), best);
  };
  // A program of a million actions takes a gigabyte or so.
  const uint32_t compilers = std::min(settings.threads, 4u);
  plan::Answer &answer = planned.answer;
  Fitting fitting(subject, question, evaluator);
  answer = plan::search(space, evaluator, search);
  std::vector<plan::Proposal> ranked = answer.ranked;
  // All of these will be asked for.
  std::vector<plan::Proposal> wanted = answer.ofSchemes;
  wanted.insert(wanted.end(), ranked.begin(),
                ranked.begin() + std::min(settings.shown, ranked.size()));
  fitting.prepare(wanted, compilers, settings.compiling);
  fitting.keepFitting(ranked, settings.shown);
  if (ranked.size() < settings.needed && answer.ranked.size() == search.most) {
    // All of those may have been too large: then everything is a candidate.
    search.most = space.choices.size();
    answer = plan::search(space, evaluator, search);
    ranked = answer.ranked;
    fitting.keepFitting(ranked, settings.shown);
  }
  std::vector<plan::Proposal> ofSchemes;
  for (const plan::Proposal &proposal : answer.ofSchemes)
    if (std::optional<plan::Proposal> fit = fitting.fit(proposal))
      ofSchemes.push_back(std::move(*fit));
  planned.ranked = detailsOf(evaluator, ranked, settings.threads);
  planned.ofSchemes = detailsOf(evaluator, ofSchemes, settings.threads);
  planned.passedOver = fitting.passedOver();
  return planned;
}

} // namespace chimera
