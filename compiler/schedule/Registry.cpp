//===- Registry.cpp - The schemes by name ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

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
              std::string(option.values) + ")\n";
    }
  }
  return text;
}

Made makePlan(const Scheme &scheme, const Request &request) {
  if (std::string reason = scheme.check(request); !reason.empty())
    return reason;
  Made made = scheme.make(request);
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
