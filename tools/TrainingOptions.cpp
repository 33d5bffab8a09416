//===- TrainingOptions.cpp - Numbers of a training for one run ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/TrainingOptions.h"

#include "runtime/program/Optimizer.h"
#include "runtime/random/Mix.h"
#include "tools/CommandLine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using program::RateSchedule;

namespace {
/// Options that are numbers: their names, help, and places in the settings and
/// in the program.
struct NumberOption {
  const char *name;
  std::optional<double> TrainingNumbers::*given;
  double program::OptimizerT::*field;
  double most;
  const char *help;
};
constexpr NumberOption kNumbers[] = {
    {"--learning-rate", &TrainingNumbers::learningRate,
     &program::OptimizerT::learning_rate, 1e6,
     "Learning rate, the highest of its schedule"},
    {"--min-lr", &TrainingNumbers::minLr, &program::OptimizerT::min_lr, 1e6,
     "Learning rate at the end of a schedule that falls"},
    {"--weight-decay", &TrainingNumbers::weightDecay,
     &program::OptimizerT::weight_decay, 1e6, "Weight decay"},
    {"--beta1", &TrainingNumbers::beta1, &program::OptimizerT::beta1, 1,
     "beta1 of AdamW"},
    {"--beta2", &TrainingNumbers::beta2, &program::OptimizerT::beta2, 1,
     "beta2 of AdamW"},
    {"--momentum", &TrainingNumbers::momentum, &program::OptimizerT::momentum,
     1, "Momentum of SGD or Muon, for programs that have one"},
    {"--clip-norm", &TrainingNumbers::clipNorm, &program::OptimizerT::clip_norm,
     1e300,
     "The largest norm of the gradients of all stages, for programs that clip. "
     "A large number: the norm is computed and logged, but not clipped"}};

/// Options that are numbers of steps.
struct StepsOption {
  const char *name;
  std::optional<uint64_t> TrainingNumbers::*given;
  uint64_t program::OptimizerT::*field;
  uint64_t least;
  const char *help;
};
constexpr StepsOption kSteps[] = {
    {"--warmup", &TrainingNumbers::warmup, &program::OptimizerT::warmup, 0,
     "Steps in which the learning rate rises from 0"},
    {"--decay-steps", &TrainingNumbers::decaySteps,
     &program::OptimizerT::decay_steps, 1,
     "With --lr-schedule wsd: the number of last steps in which the learning "
     "rate falls"},
    {"--lr-steps", &TrainingNumbers::lrSteps, &program::OptimizerT::lr_steps, 1,
     "Steps after which the learning rate has fallen to --min-lr, if not "
     "--steps. Give it to train a part of a longer schedule"}};

constexpr RateSchedule kSchedules[] = {
    RateSchedule::Constant, RateSchedule::Linear, RateSchedule::Cosine,
    RateSchedule::WarmupStableDecay};
static_assert(std::size(kSchedules) ==
              static_cast<size_t>(RateSchedule::MAX) + 1);

/// The largest number for --skip-nonfinite.
constexpr uint64_t kMaxSkipped = 1'000'000'000;

std::vector<std::string> scheduleNames() {
  std::vector<std::string> names;
  for (RateSchedule schedule : kSchedules)
    names.emplace_back(program::nameOf(schedule));
  return names;
}

/// Refuses options that the optimizer or the schedule does not use.
void refuseUnused(const RunSettings &settings,
                  const program::OptimizerT &optimizer) {
  auto refuse = [&](const char *option, bool isUsed,
                    const std::string &reason) {
    if (settings.givenOptions.contains(option) && !isUsed)
      throw std::invalid_argument(option + reason);
  };
  const bool isMuon = optimizer.name == program::kMuon;
  for (const char *beta : {"--beta1", "--beta2"})
    refuse(beta, isMuon || optimizer.name == program::kAdamW,
           " is for adamw and muon, and the program has " + optimizer.name +
               ": leave it out");
  refuse("--momentum", isMuon || optimizer.name == program::kSgdMomentum,
         " is for programs with a momentum, which takes memory: compile the "
         "program with optimizer(sgd) momentum(…) of chimera.training");
  for (const char *option : {"--clip-norm", "--skip-nonfinite"})
    refuse(
        option, optimizer.clip_norm > 0,
        " needs the norm of the gradients of all stages: compile the program "
        "with clip_norm(…) of chimera.training");
  if (settings.training.clipNorm == 0.0)
    throw std::invalid_argument(
        "--clip-norm: expected a number above 0, got 0: "
        "give a large number to clip nothing");
  const bool falls = optimizer.lr_schedule != RateSchedule::Constant;
  for (const char *option : {"--min-lr", "--lr-steps"})
    refuse(option, falls,
           std::string(" is for a learning rate that falls, and this one is "
                       "constant: give ") +
               (settings.givenOptions.contains("--lr-schedule")
                    ? "another --lr-schedule"
                    : "--lr-schedule too"));
  refuse("--decay-steps",
         optimizer.lr_schedule == RateSchedule::WarmupStableDecay,
         std::string(" is for the schedule wsd, and this one is ") +
             program::nameOf(optimizer.lr_schedule) +
             ": give --lr-schedule wsd too");
}
} // namespace

void chimera::addTrainingOptions(CLI::App &app, RunSettings &settings) {
  constexpr const char *kGroup =
      "Training (default: as in the program's chimera.training)";
  TrainingNumbers &numbers = settings.training;
  auto addNumber = [&](const NumberOption &option) {
    app.add_option(option.name, numbers.*option.given, option.help)
        ->check(within(0.0, option.most))
        ->group(kGroup);
  };
  addNumber(kNumbers[0]);
  app.add_option("--lr-schedule", numbers.lrSchedule,
                 "How the learning rate changes after --warmup: constant; "
                 "linear or cosine: falls until the last step; wsd: is "
                 "constant and falls in the last --decay-steps")
      ->check(oneOf(scheduleNames(), {{"warmup-stable-decay", "wsd"},
                                      {"warmup_stable_decay", "wsd"},
                                      {"none", "constant"}}))
      ->group(kGroup);
  for (const StepsOption &option : kSteps)
    app.add_option(option.name, numbers.*option.given, option.help)
        ->transform(wholeWithin(option.least, program::kMaxSteps))
        ->group(kGroup);
  for (size_t i = 1; i < std::size(kNumbers); ++i)
    addNumber(kNumbers[i]);
  app.add_option("--skip-nonfinite", settings.skipNonFinite,
                 "Leave out up to this number of steps whose gradients are not "
                 "finite, and end the run at the next one. For programs that "
                 "clip. Default: the first one ends the run")
      ->transform(wholeWithin(1, kMaxSkipped))
      ->group(kGroup);
  app.add_option("--no-decay", numbers.noDecay,
                 "Pattern of the names of parameters without weight decay, "
                 "such as '*embedding*'. Repeat --no-decay for more patterns. "
                 "Replaces the patterns of the program; none: there are none")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--seed", numbers.seed,
                 "Seed of the initial weights, the order of the data and "
                 "dropout")
      ->transform(wholeWithin(0, UINT64_MAX))
      ->group(kGroup);
}

std::vector<std::string> chimera::optimizerOptions() {
  std::vector<std::string> names = {"--lr-schedule", "--no-decay",
                                    "--skip-nonfinite"};
  for (const NumberOption &option : kNumbers)
    names.emplace_back(option.name);
  for (const StepsOption &option : kSteps)
    names.emplace_back(option.name);
  return names;
}

/// The patterns that --no-decay gives: no patterns for "none".
static std::vector<std::string>
patternsOf(const std::vector<std::string> &given) {
  if (std::ranges::find(given, "none") == given.end())
    return given;
  if (given.size() > 1)
    throw std::invalid_argument(
        "--no-decay: expected none alone, got it with other patterns");
  return {};
}

void chimera::applyTrainingOptions(const RunSettings &settings,
                                   program::ProgramT &program) {
  const TrainingNumbers &given = settings.training;
  program::OptimizerT &optimizer = *program.optimizer;
  for (RateSchedule schedule : kSchedules)
    if (given.lrSchedule == program::nameOf(schedule))
      optimizer.lr_schedule = schedule;
  if (optimizer.lr_schedule == RateSchedule::Constant) {
    optimizer.min_lr = 0;
    optimizer.lr_steps = 0;
  }
  if (optimizer.lr_schedule != RateSchedule::WarmupStableDecay)
    optimizer.decay_steps = 0;
  refuseUnused(settings, optimizer);
  for (const NumberOption &option : kNumbers)
    if (given.*option.given)
      optimizer.*option.field = *(given.*option.given);
  for (const StepsOption &option : kSteps)
    if (given.*option.given)
      optimizer.*option.field = *(given.*option.given);
  if (!given.noDecay.empty())
    optimizer.no_decay = patternsOf(given.noDecay);
  program.seed = given.seed.value_or(program.seed);
  if (optimizer.lr_schedule == RateSchedule::WarmupStableDecay &&
      optimizer.decay_steps == 0)
    throw std::invalid_argument("--lr-schedule wsd needs --decay-steps, the "
                                "number of last steps in which the learning "
                                "rate falls");
  if (std::string fault = program::faultOfOptimizer(optimizer); !fault.empty())
    throw std::invalid_argument("the numbers of the program and of the options "
                                "together: " +
                                fault);
  if (given.noDecay.empty() || !program.model)
    return;
  if (std::string fault = program::faultOfParameters(optimizer, *program.model);
      !fault.empty())
    throw std::invalid_argument("--no-decay: " + fault);
}

std::vector<AgreedValue>
chimera::agreedTrainingOptions(const RunSettings &settings) {
  const TrainingNumbers &given = settings.training;
  std::vector<AgreedValue> values;
  // An option that is not given differs from each value, also from 0.
  auto add = [&](const char *name, std::optional<uint64_t> bits) {
    values.push_back({name, bits ? mix({*bits}) : 0});
  };
  auto bitsOf = [](std::optional<double> number) {
    return number ? std::optional(std::bit_cast<uint64_t>(*number))
                  : std::nullopt;
  };
  for (const NumberOption &option : kNumbers)
    add(option.name, bitsOf(given.*option.given));
  for (const StepsOption &option : kSteps)
    add(option.name, given.*option.given);
  add("--seed", given.seed);
  values.push_back({"--skip-nonfinite", settings.skipNonFinite});
  add("--lr-schedule",
      given.lrSchedule
          ? std::optional(digestOf(std::as_bytes(std::span(*given.lrSchedule))))
          : std::nullopt);
  uint64_t patterns = 0;
  for (const std::string &pattern : given.noDecay)
    patterns = mix({patterns, digestOf(std::as_bytes(std::span(pattern)))});
  values.push_back({"--no-decay", patterns});
  return values;
}
