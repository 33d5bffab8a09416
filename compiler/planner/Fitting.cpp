//===- Fitting.cpp - Changes plans until their programs fit ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Fitting.h"

#include "compiler/plan/Parallel.h"
#include "compiler/planner/CompileCheck.h"

#include <algorithm>

namespace chimera {

std::string Fitting::describe(const plan::Proposal &proposal) {
  std::lock_guard lock(mutex);
  return describePlan(ops, proposal, question.pins.bucketBytes);
}

Fitting::Fit Fitting::tryToFit(const plan::Proposal &proposal,
                               const std::string &text) {
  std::string error = compileError(text);
  if (error.empty())
    return {proposal, {}};
  const plan::Recomputation allowed = question.pins.recomputation;
  auto fitting =
      [&](double share,
          plan::Recomputation recomputation) -> std::optional<plan::Proposal> {
    auto memory = static_cast<int64_t>(
        share * static_cast<double>(question.machine.memory));
    plan::Outcome outcome = evaluator.evaluate(
        proposal.choice, [](double, int64_t) { return false; }, memory,
        recomputation);
    auto *smaller = std::get_if<plan::Proposal>(&outcome);
    if (smaller && compileError(describe(*smaller)).empty())
      return std::move(*smaller);
    return std::nullopt;
  };
  for (double share : {0.99, 0.96, 0.9, 0.8})
    if (std::optional<plan::Proposal> smaller = fitting(share, allowed))
      return {std::move(smaller), error};
  if (allowed == plan::Recomputation::Least)
    return {fitting(1, plan::Recomputation::All), error};
  return {std::nullopt, error};
}

void Fitting::prepare(const std::vector<plan::Proposal> &proposals,
                      uint32_t threads, const Progress &progress) {
  // `proposals` may contain a plan twice. The key makes sure that it is
  // compiled once.
  std::map<std::string, const plan::Proposal *> byText;
  for (const plan::Proposal &proposal : proposals)
    if (std::string text = describe(proposal); !fits.contains(text))
      byText.emplace(std::move(text), &proposal);
  std::vector<std::pair<const std::string *, const plan::Proposal *>> all;
  for (const auto &[text, proposal] : byText)
    all.emplace_back(&text, proposal);
  // Compile the largest programs first, so that no thread starts one at the
  // end.
  std::ranges::stable_sort(all, std::greater(), [](const auto &one) {
    const plan::Choice &choice = one.second->choice;
    return int64_t{choice.stages} * choice.microBatches;
  });
  std::vector<Fit> made(all.size());
  std::mutex progressing;
  size_t done = 0;
  plan::parallelFor(all.size(), threads, [&](size_t i) {
    made[i] = tryToFit(*all[i].second, *all[i].first);
    std::lock_guard lock(progressing);
    if (++done; progress)
      progress(done, all.size());
  });
  for (size_t i = 0; i < all.size(); ++i)
    fits.emplace(*all[i].first, std::move(made[i]));
}

std::optional<plan::Proposal> Fitting::fit(const plan::Proposal &proposal) {
  prepare({proposal}, 1);
  const Fit &fit = fits.at(describe(proposal));
  if (!fit.proposal) {
    std::string error = plan::nameOf(proposal.choice) + ": " + fit.error;
    if (std::ranges::find(errors, error) == errors.end())
      errors.push_back(std::move(error));
  }
  return fit.proposal;
}

bool Fitting::isKnown(const plan::Proposal &proposal) {
  return fits.contains(describe(proposal));
}

void Fitting::keepFitting(std::vector<plan::Proposal> &ranked, size_t number) {
  std::vector<plan::Proposal> fitting;
  for (const plan::Proposal &proposal : ranked) {
    // A plan that was changed to fit is usually slower than before, so a later
    // plan may be faster. The loop ends when the next plan is not faster than
    // the last one to keep.
    if (fitting.size() >= number &&
        !plan::isFaster(proposal, fitting[number - 1]))
      break;
    if (std::optional<plan::Proposal> fit = this->fit(proposal))
      fitting.insert(std::ranges::upper_bound(fitting, *fit, plan::isFaster),
                     *fit);
  }
  fitting.resize(std::min(fitting.size(), number));
  ranked = std::move(fitting);
}

} // namespace chimera
