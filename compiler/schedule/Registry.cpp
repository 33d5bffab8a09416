//===- Registry.cpp - The schemes by name ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

#include "compiler/schedule/Best.h"
#include "compiler/schedule/families/Families.h"

namespace chimera::schedule {

std::span<const Scheme> schemes() {
  static const Scheme all[] = {
      kChimera, kGPipe,     kOneForwardOneBackward, kInterleaved1F1B, kZBV,
      kGems,    kPipeDream, kPipeDream2BW};
  return all;
}

const Scheme *findScheme(std::string_view name) {
  for (const Scheme &scheme : schemes())
    if (name == scheme.name)
      return &scheme;
  return nullptr;
}

std::string schemeNames() {
  std::string names;
  for (const Scheme &scheme : schemes())
    names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  return names;
}

std::string schemeHelp() {
  std::string text;
  for (const Scheme &scheme : schemes()) {
    text += std::string(scheme.name) + ": " + scheme.summary + " (" +
            scheme.needs + ")\n";
    Options options(scheme.options);
    for (size_t i = 0; i < scheme.options.size(); ++i) {
      const Option &option = scheme.options[i];
      text += "  " + std::string(option.name) + " = " + options.print(i) +
              ": " + std::string(option.summary) + " (" +
              std::string(option.values) + ", or best)\n";
    }
  }
  return text;
}

std::string whyNot(const Scheme &scheme, const Request &request) {
  if (!request.options.anyOpen())
    return scheme.check(request);
  if (!settingsOf(scheme, request).empty())
    return {};
  // What any of them would say: that of what holds unless options are set.
  Request any = request;
  for (size_t i = 0; i < scheme.options.size(); ++i)
    if (any.options.isOpen(i))
      any.options.set(i, scheme.options[i].otherwise);
  return scheme.check(any);
}

Plan placePlan(const Scheme &scheme, const Request &request) {
  Plan plan = scheme.place(request);
  plan.options = request.options;
  if (request.splitBackward)
    plan.splits = true;
  return plan;
}

Made makePlan(const Scheme &scheme, const Request &request) {
  if (std::string reason = whyNot(scheme, request); !reason.empty())
    return reason;
  if (request.options.anyOpen()) {
    if (std::optional<Candidate> best = bestOf(scheme, request))
      return std::move(best->plan);
    return std::string("no setting of its options makes a plan");
  }
  Made made = scheme.make(request);
  if (made.plan)
    made.plan->options = request.options;
  if (made.plan && request.splitBackward && made.plan->splits.anyWhole()) {
    made.plan->order = splitBackwards(made.plan->order);
    made.plan->splits = true;
  }
  return made;
}

template <typename Formula>
static const Formula *find(std::span<const Formula> formulas,
                           const Sizes &sizes) {
  for (const Formula &formula : formulas)
    if (formula.isSplit == sizes.isSplit && formula.holds(sizes))
      return &formula;
  return nullptr;
}

const BubbleFormula *findBubbleFormula(const Scheme &scheme,
                                       const Sizes &sizes) {
  return find(scheme.bubbleFormulas, sizes);
}

const PeakFormula *findPeakFormula(const Scheme &scheme, const Sizes &sizes) {
  return sizes.recomputed ? nullptr : find(scheme.peakFormulas, sizes);
}

} // namespace chimera::schedule
