//===- Optimizer.cpp - The numbers of an optimizer ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Optimizer.h"

#include "runtime/program/Printable.h"
#include "runtime/program/Saturated.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace chimera::program {

namespace {

std::string text(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

/// An error text if a number is negative or too large.
std::string faultOfRanges(const OptimizerT &optimizer) {
  struct {
    const char *what;
    double value;
    double below;
  } const numbers[] = {{"learning rate", optimizer.learning_rate, INFINITY},
                       {"min_lr", optimizer.min_lr, INFINITY},
                       {"beta1", optimizer.beta1, 1},
                       {"beta2", optimizer.beta2, 1},
                       {"epsilon", optimizer.epsilon, INFINITY},
                       {"weight decay", optimizer.weight_decay, INFINITY},
                       {"momentum", optimizer.momentum, 1},
                       {"clip_norm", optimizer.clip_norm, INFINITY}};
  for (const auto &[what, value, below] : numbers)
    // This form of the condition also refuses NaN.
    if (!(value >= 0 && value < below))
      return std::string("expected a ") + what +
             (std::isinf(below) ? " of at least 0" : " in [0, 1)") + ", got " +
             text(value);
  const std::pair<const char *, uint64_t> steps[] = {
      {"warmup", optimizer.warmup},
      {"decay_steps", optimizer.decay_steps},
      {"lr_steps", optimizer.lr_steps}};
  for (const auto &[what, count] : steps)
    if (count > kMaxSteps)
      return std::string("expected at most ") + std::to_string(kMaxSteps) +
             " steps of " + what + ", got " + std::to_string(count);
  return {};
}

/// Whether a pattern matches the name of the parameter.
bool matchesAny(const std::vector<std::string> &patterns,
                std::string_view name) {
  return std::ranges::any_of(patterns, [&](const std::string &pattern) {
    return matches(pattern, name);
  });
}

bool isMatrix(const Parameter &parameter) {
  return parameter.shape.size() == 2 && parameter.shape[0] > 1 &&
         parameter.shape[1] > 1;
}

UpdateRule ruleOf(const OptimizerT &optimizer, const PackageT &model,
                  uint32_t layer, uint32_t number, const Parameter &parameter) {
  const UpdateRule rule =
      ruleOfMatrices(optimizer, layer > 0 && layer + 1 < layerCount(model));
  if (rule != UpdateRule::Muon)
    return rule;
  const bool isExcepted =
      !isMatrix(parameter) ||
      (!optimizer.no_muon.empty() &&
       matchesAny(optimizer.no_muon, parameterName(model, layer, number)));
  return isExcepted ? UpdateRule::AdamW : UpdateRule::Muon;
}

/// Some names of parameters of the model, for an error text.
std::string exampleNames(const PackageT &model) {
  std::string text;
  const uint32_t layers = layerCount(model);
  for (uint32_t layer : {0u, layers / 2, layers - 1})
    if (!layerParameters(model, layer).empty()) {
      const std::string name = printable(parameterName(model, layer, 0));
      if (text.find(name) == text.npos)
        text += (text.empty() ? "" : ", ") + name;
    }
  return text;
}

/// The lists of patterns with their names.
std::array<std::pair<const char *, const std::vector<std::string> *>, 2>
patternLists(const OptimizerT &optimizer) {
  return {{{"no_decay", &optimizer.no_decay}, {"no_muon", &optimizer.no_muon}}};
}

} // namespace

std::string checkOptimizer(const std::string &name) {
  for (const char *known : {kAdamW, kMuon, kSgd, kSgdMomentum})
    if (name == known)
      return "";
  return "expected optimizer 'adamw', 'muon', 'sgd' or 'sgd-momentum', got '" +
         name + "'";
}

UpdateRule ruleOfMatrices(const OptimizerT &optimizer, bool isInner) {
  if (optimizer.name == kSgd)
    return UpdateRule::Sgd;
  if (optimizer.name == kSgdMomentum)
    return UpdateRule::SgdMomentum;
  return optimizer.name == kMuon && isInner ? UpdateRule::Muon
                                            : UpdateRule::AdamW;
}

std::span<const std::string_view> statesOf(UpdateRule rule) {
  static constexpr std::string_view kOfAdamW[] = {"exp_avg", "exp_avg_sq"},
                                    kOfMomentum[] = {"momentum_buffer"};
  switch (rule) {
  case UpdateRule::Sgd:
    return {};
  case UpdateRule::SgdMomentum:
  case UpdateRule::Muon:
    return kOfMomentum;
  case UpdateRule::AdamW:
    return kOfAdamW;
  }
  return {};
}

StateLayout stateLayout(const OptimizerT &optimizer, const PackageT &model,
                        uint32_t first, uint32_t count) {
  const std::vector<StageParameter> parameters =
      stageParameters(model, first, count);
  StateLayout layout;
  for (const StageParameter &held : parameters)
    layout.parameters.push_back(
        {ruleOf(optimizer, model, held.layer, held.number, held.parameter),
         {}});
  for (size_t state = 0; state < 2; ++state)
    for (size_t i = 0; i < parameters.size(); ++i)
      if (state < statesOf(layout.parameters[i].rule).size()) {
        layout.parameters[i].offsets.push_back(layout.elements);
        layout.elements =
            saturatedSum({layout.elements, parameters[i].parameter.elements()});
      }
  return layout;
}

int64_t optimizerBytes(const OptimizerT &optimizer, const PackageT &model,
                       Types types, uint32_t first, uint32_t count) {
  return parameterBytes(types,
                        stateLayout(optimizer, model, first, count).elements);
}

int64_t orthogonalisationFlops(const OptimizerT &optimizer,
                               const PackageT &model, uint32_t layer) {
  if (optimizer.name != kMuon)
    return 0;
  int64_t flops = 0;
  const std::vector<Parameter> parameters = layerParameters(model, layer);
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    if (ruleOf(optimizer, model, layer, i, parameters[i]) != UpdateRule::Muon)
      continue;
    // Three products in each iteration: [s, l] × [l, s], [s, s] × [s, s] and
    // [s, s] × [s, l], where s is the shorter side of the matrix.
    const auto [s, l] =
        std::minmax(parameters[i].shape[0], parameters[i].shape[1]);
    flops = saturatedSum({flops, saturatedProduct({2 * kMuonIterations, s, s,
                                                   saturatedSum({l, l, s})})});
  }
  return flops;
}

std::string faultOfOptimizer(const OptimizerT &optimizer) {
  if (std::string fault = faultOfRanges(optimizer); !fault.empty())
    return fault;
  for (const auto &[what, patterns] : patternLists(optimizer))
    if (patterns->size() > kMaxPatterns)
      return "expected at most " + std::to_string(kMaxPatterns) +
             " patterns in " + what + ", got " +
             std::to_string(patterns->size());
  const bool isMuon = optimizer.name == kMuon;
  if (optimizer.momentum > 0 && optimizer.name != kSgdMomentum && !isMuon)
    return "expected no momentum with '" + printable(optimizer.name) +
           "', got " + text(optimizer.momentum);
  if (!optimizer.no_muon.empty() && !isMuon)
    return "expected no patterns in no_muon with '" +
           printable(optimizer.name) + "', got " +
           std::to_string(optimizer.no_muon.size());
  if (optimizer.lr_schedule > RateSchedule::MAX)
    return "unknown lr_schedule " +
           std::to_string(static_cast<unsigned>(optimizer.lr_schedule));
  if (optimizer.min_lr > optimizer.learning_rate)
    return "expected min_lr to be at most the learning rate of " +
           text(optimizer.learning_rate) + ", got " + text(optimizer.min_lr);
  const bool isWsd = optimizer.lr_schedule == RateSchedule::WarmupStableDecay;
  if (isWsd != (optimizer.decay_steps > 0))
    return std::string(isWsd ? "expected decay_steps with"
                             : "expected no decay_steps with") +
           " lr_schedule " + nameOf(optimizer.lr_schedule) + ", got " +
           std::to_string(optimizer.decay_steps);
  const uint64_t changing = optimizer.warmup + optimizer.decay_steps;
  if (optimizer.lr_steps > 0 && changing > optimizer.lr_steps)
    return "expected lr_steps of at least " + std::to_string(changing) +
           ", the steps of warmup" + (isWsd ? " and decay_steps" : "") +
           ", got " + std::to_string(optimizer.lr_steps);
  return {};
}

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  // The position after the last `*`, and the position in `text` up to which
  // this `*` reaches. Only the last `*` must be tried with other lengths.
  size_t afterStar = pattern.npos, reached = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      afterStar = ++p;
      reached = t;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (afterStar != pattern.npos) {
      p = afterStar;
      t = ++reached;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

bool decays(const OptimizerT &optimizer, std::string_view name, bool byModel) {
  return byModel && !matchesAny(optimizer.no_decay, name);
}

std::string faultOfParameters(const OptimizerT &optimizer,
                              const PackageT &model) {
  for (const auto &[what, patterns] : patternLists(optimizer)) {
    std::vector<std::string> unused = *patterns;
    for (uint32_t layer = 0; layer < layerCount(model) && !unused.empty();
         ++layer)
      for (uint32_t i = 0; i < layerParameters(model, layer).size(); ++i) {
        const std::string name = parameterName(model, layer, i);
        std::erase_if(unused, [&](const std::string &pattern) {
          return matches(pattern, name);
        });
      }
    if (!unused.empty())
      return std::string("expected each pattern of ") + what +
             " to match a parameter, got '" + printable(unused.front()) +
             "': names are like " + exampleNames(model);
  }
  const bool isMuon = optimizer.name == kMuon;
  for (uint32_t layer = 0; isMuon && layer < layerCount(model); ++layer)
    if (orthogonalisationFlops(optimizer, model, layer) > 0)
      return {};
  return isMuon ? "expected a matrix that 'muon' updates: of a layer that is "
                  "neither the first nor the last, and that no pattern of "
                  "no_muon matches; got none: use optimizer(adamw)"
                : "";
}

} // namespace chimera::program
