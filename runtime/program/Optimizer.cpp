//===- Optimizer.cpp - The numbers of an optimizer ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Optimizer.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Printable.h"

#include <algorithm>
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

/// Some names of parameters of the model, for an error text.
std::string exampleNames(const ModelT &model) {
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

} // namespace

std::string faultOfOptimizer(const OptimizerT &optimizer) {
  if (std::string fault = faultOfRanges(optimizer); !fault.empty())
    return fault;
  if (optimizer.no_decay.size() > kMaxPatterns)
    return "expected at most " + std::to_string(kMaxPatterns) +
           " patterns in no_decay, got " +
           std::to_string(optimizer.no_decay.size());
  if (optimizer.momentum > 0 && optimizer.name != kSgdMomentum)
    return "expected no momentum with '" + printable(optimizer.name) +
           "', got " + text(optimizer.momentum);
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
  return byModel && std::ranges::none_of(optimizer.no_decay,
                                         [&](const std::string &pattern) {
                                           return matches(pattern, name);
                                         });
}

std::string faultOfPatterns(const OptimizerT &optimizer, const ModelT &model) {
  std::vector<std::string> unused = optimizer.no_decay;
  for (uint32_t layer = 0; layer < layerCount(model) && !unused.empty();
       ++layer)
    for (uint32_t i = 0; i < layerParameters(model, layer).size(); ++i) {
      const std::string name = parameterName(model, layer, i);
      std::erase_if(unused, [&](const std::string &pattern) {
        return matches(pattern, name);
      });
    }
  if (unused.empty())
    return {};
  return "expected each pattern of no_decay to match a parameter, got '" +
         printable(unused.front()) + "': names are like " + exampleNames(model);
}

} // namespace chimera::program
