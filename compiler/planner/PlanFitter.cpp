//===- PlanFitter.cpp - Changes plans until their programs fit ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PlanFitter.h"

#include "compiler/planner/CompileCheck.h"
#include "compiler/planner/search/Parallel.h"

#include <algorithm>
#include <array>

namespace chimera {

/// If a plan does not fit, it is made again for these shares of the machine's
/// memory, in this order.
static constexpr std::array kMemoryShares = {0.99, 0.96, 0.9, 0.8};

std::string PlanFitter::describe(const plan::Proposal &proposal) {
  std::lock_guard lock(mutex);
  return describePlan(ops, proposal, question.pins.bucketBytes);
}

std::optional<plan::Proposal>
PlanFitter::firstChanged(const plan::Choice &choice,
                         const plan::CanRuleOut &canRuleOut,
                         const IsAccepted &isAccepted) const {
  auto changed =
      [&](double share,
          plan::Recomputation recomputation) -> std::optional<plan::Proposal> {
    auto memory = static_cast<int64_t>(
        share * static_cast<double>(question.machine.memory));
    plan::Outcome outcome =
        evaluator.evaluate(choice, canRuleOut, memory, recomputation);
    auto *proposal = std::get_if<plan::Proposal>(&outcome);
    if (proposal && isAccepted(*proposal))
      return std::move(*proposal);
    return std::nullopt;
  };
  const plan::Recomputation allowed = question.pins.recomputation;
  for (double share : kMemoryShares)
    if (std::optional<plan::Proposal> proposal = changed(share, allowed))
      return proposal;
  if (allowed == plan::Recomputation::Least)
    return changed(1, plan::Recomputation::All);
  return std::nullopt;
}

PlanFitter::Fit PlanFitter::tryToFit(const plan::Proposal &proposal,
                                     const std::string &text) {
  std::string error = compileError(text);
  if (error.empty())
    return {proposal, {}};
  return {firstChanged(
              proposal.choice, [](double, int64_t) { return false; },
              [&](const plan::Proposal &changed) {
                return compileError(describe(changed)).empty();
              }),
          error};
}

bool PlanFitter::mayBecomeFaster(const plan::Proposal &proposal,
                                 const plan::Proposal &limit) const {
  // If a plan without recomputes needs at most the smallest share of the
  // memory, making it again gives the same plan for every share.
  if (proposal.recompute.empty() &&
      static_cast<double>(proposal.peakBytes) <=
          kMemoryShares.back() * static_cast<double>(question.machine.memory))
    return false;
  return firstChanged(
             proposal.choice,
             [&](double bound, int64_t) { return bound > limit.stepTime; },
             [&](const plan::Proposal &changed) {
               return plan::isFaster(changed, limit);
             })
      .has_value();
}

void PlanFitter::prepare(const std::vector<plan::Proposal> &proposals,
                         uint32_t threads, const Progress &progress) {
  // `proposals` may contain a plan twice. The map makes sure that each plan is
  // compiled once.
  std::map<std::string, const plan::Proposal *> byText;
  for (const plan::Proposal &proposal : proposals)
    if (std::string text = describe(proposal); !fits.contains(text))
      byText.emplace(std::move(text), &proposal);
  std::vector<std::pair<const std::string *, const plan::Proposal *>> all;
  for (const auto &[text, proposal] : byText)
    all.emplace_back(&text, proposal);
  // Compile the largest programs first, so that no thread begins a large one at
  // the end.
  std::ranges::stable_sort(all, std::greater(), [](const auto &one) {
    const plan::Choice &choice = one.second->choice;
    return int64_t{choice.stages} * choice.microBatches;
  });
  std::vector<Fit> fitted(all.size());
  std::mutex progressing;
  size_t done = 0;
  plan::parallelFor(all.size(), threads, [&](size_t i) {
    fitted[i] = tryToFit(*all[i].second, *all[i].first);
    std::lock_guard lock(progressing);
    if (++done; progress)
      progress(done, all.size());
  });
  for (size_t i = 0; i < all.size(); ++i)
    fits.emplace(*all[i].first, std::move(fitted[i]));
}

std::optional<plan::Proposal>
PlanFitter::findFittingPlan(const plan::Proposal &proposal) {
  prepare({proposal}, 1);
  const Fit &fit = fits.at(describe(proposal));
  if (!fit.proposal) {
    std::string error = plan::nameOf(proposal.choice) + ": " + fit.error;
    if (std::ranges::find(errors, error) == errors.end())
      errors.push_back(std::move(error));
  }
  return fit.proposal;
}

bool PlanFitter::isKnown(const plan::Proposal &proposal) {
  return fits.contains(describe(proposal));
}

void PlanFitter::keepFitting(std::vector<plan::Proposal> &ranked,
                             size_t number) {
  std::vector<plan::Proposal> fitting;
  for (const plan::Proposal &proposal : ranked) {
    // A plan that is changed to fit is usually slower than before. So a later
    // plan may be faster than an earlier one that was changed. A changed plan
    // may also be faster than before, because its model is cut in another way.
    // Compiling takes much longer than making a plan again. So compile a plan
    // only if it may be one of those to keep, either as it is or after a
    // change.
    if (fitting.size() >= number &&
        !plan::isFaster(proposal, fitting[number - 1]) &&
        !mayBecomeFaster(proposal, fitting[number - 1]))
      continue;
    if (std::optional<plan::Proposal> fit = findFittingPlan(proposal))
      fitting.insert(std::ranges::upper_bound(fitting, *fit, plan::isFaster),
                     *fit);
  }
  fitting.resize(std::min(fitting.size(), number));
  ranked = std::move(fitting);
}

} // namespace chimera
