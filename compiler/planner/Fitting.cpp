//===- Fitting.cpp - Plans that fit when they are compiled ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Fitting.h"

#include "compiler/planner/CompileCheck.h"

#include <algorithm>

namespace chimera {

std::string Fitting::faultOf(const plan::Proposal &proposal) const {
  return compileFault(
      describePlan(subject, proposal, question.pins.bucketBytes));
}

std::optional<plan::Proposal> Fitting::fit(const plan::Proposal &proposal) {
  std::string fault = faultOf(proposal);
  if (fault.empty())
    return proposal;
  for (double share : {0.99, 0.96, 0.9, 0.8}) {
    auto memory = static_cast<int64_t>(
        share * static_cast<double>(question.machine.memory));
    plan::Outcome outcome = evaluator.evaluate(
        proposal.choice, [](double, int64_t) { return false; }, memory);
    auto *smaller = std::get_if<plan::Proposal>(&outcome);
    if (smaller && faultOf(*smaller).empty())
      return std::move(*smaller);
  }
  faults.push_back(plan::nameOf(proposal.choice) + ": " + fault);
  return std::nullopt;
}

void Fitting::keepFitting(std::vector<plan::Proposal> &ranked, size_t number) {
  std::vector<plan::Proposal> fitting;
  auto isFaster = [](const plan::Proposal &a, const plan::Proposal &b) {
    return std::pair(a.step, a.peakBytes) < std::pair(b.step, b.peakBytes);
  };
  for (const plan::Proposal &proposal : ranked) {
    // A plan that was changed to fit is slower than it was, so the next ones
    // may be faster than it is now. None is faster than one that was not
    // changed.
    if (fitting.size() >= number && !isFaster(proposal, fitting[number - 1]))
      break;
    if (std::optional<plan::Proposal> fit = this->fit(proposal))
      fitting.insert(std::ranges::upper_bound(fitting, *fit, isFaster), *fit);
  }
  fitting.resize(std::min(fitting.size(), number));
  ranked = std::move(fitting);
}

} // namespace chimera
