//===- TimedSchedule.cpp - A schedule with its problem --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/python/bindings/TimedSchedule.h"

#include "compiler/describe/OrderFile.h"
#include "compiler/describe/OrderWords.h"
#include "compiler/describe/Spelling.h"
#include "compiler/describe/TorchFile.h"
#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/formats/OrderText.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/AllReduce.h"
#include "compiler/schedule/verify/Verify.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

using namespace chimera;
using namespace chimera::python;
using schedule::Problem;

namespace {
/// The most stages, workers and micro-batches.
constexpr int64_t kMost = words::kMost;

[[noreturn]] void refuse(const std::string &expected, const std::string &got) {
  throw std::invalid_argument("expected " + expected + ", got " + got);
}

int32_t checked(const char *name, int64_t value, int64_t least = 1) {
  if (value < least || value > kMost)
    refuse(std::string(name) + " from " + std::to_string(least) + " to " +
               std::to_string(kMost),
           std::to_string(value));
  return static_cast<int32_t>(value);
}

std::string countWithNoun(int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) +
         (count == 1             ? ""
          : noun.ends_with("ch") ? "es"
                                 : "s");
}

/// A list with an element for each of `stages`, or no element.
template <typename T>
std::vector<T> perStage(const char *name, const std::vector<T> &given,
                        size_t stages) {
  if (!given.empty() && given.size() != stages)
    refuse(std::string(name) + " of " + countWithNoun(stages, "stage"),
           std::to_string(given.size()));
  return given;
}

/// Refuses a problem with more actions than can be shown.
void checkSize(int64_t stages, int64_t microBatches, int64_t steps,
               int64_t parts, bool isSplit, bool isRecomputed) {
  constexpr int64_t kMostActions = int64_t{1} << 22;
  const int64_t actions = stages * microBatches * steps *
                          (1 + parts * (1 + isSplit + isRecomputed));
  if (actions > kMostActions)
    refuse("at most " + std::to_string(kMostActions) + " actions",
           std::to_string(actions) + " for " + countWithNoun(stages, "stage") +
               " and " + countWithNoun(microBatches, "micro-batch"));
}

const schedule::Scheme &schemeOf(const std::string &name) {
  if (const schedule::Scheme *scheme = schedule::findScheme(name))
    return *scheme;
  refuse("schedule to be one of " + schedule::schemeNames(),
         "'" + name + "'" + schedule::hintForUnknownScheme(name));
}

const schedule::TimeUnit &unitOf(const std::string &name) {
  if (const schedule::TimeUnit *unit = schedule::findTimeUnit(name))
    return *unit;
  refuse("unit to be one of " + schedule::timeUnitNames(), "'" + name + "'");
}

void multiply(schedule::StageCost &cost, int64_t factor) {
  for (int64_t *time : {&cost.forward, &cost.backward, &cost.inputGradient,
                        &cost.weightGradient, &cost.recompute, &cost.update})
    *time *= factor;
  for (std::optional<int64_t> *time :
       {&cost.pairedForward, &cost.joinedWeightGradient})
    if (*time)
      **time *= factor;
}

std::vector<schedule::Recompute> recomputeOf(const Sizes &sizes) {
  std::vector<schedule::Recompute> all;
  if (sizes.recompute.empty())
    return all;
  all.resize(sizes.stages, schedule::Recompute::None);
  for (int64_t stage : sizes.recompute) {
    if (stage < 0 || stage >= sizes.stages)
      refuse("stages to recompute from 0 to " +
                 std::to_string(sizes.stages - 1),
             std::to_string(stage));
    all[stage] =
        sizes.isFused ? schedule::Recompute::Fused : schedule::Recompute::Early;
  }
  return all;
}
} // namespace

void TimedSchedule::state(const Statement &statement) {
  problem.width = checked("data_parallel", statement.copies);
  const auto *policy = std::ranges::find(
      schedule::kPolicies, statement.allReduce,
      [](const schedule::NamedPolicy &row) { return std::string(row.name); });
  if (policy == std::end(schedule::kPolicies))
    refuse("all_reduce to be lazy, eager or eager_opt",
           "'" + statement.allReduce + "'");
  problem.policy = policy->policy;
  problem.bucketBytes = statement.bucketBytes;
  problem.bytes = perStage("sizes", statement.bytes, problem.stages.size());
  if (statement.memoryCap != 0)
    problem.memoryCaps.assign(problem.workers, statement.memoryCap);
}

void TimedSchedule::setTimes(const Statement &statement) {
  const schedule::StatedTimes &times = statement.times;
  scale = {&unitOf(statement.unit), times.perUnit};
  if (times.areOwn()) {
    // Make ticks small enough for the parts of a backward.
    const int64_t parts = schedule::maxParts(problem.pipelines);
    scale.perUnit *= parts;
    problem.stages = perStage("costs", statement.costs, problem.stages.size());
    for (schedule::StageCost &cost : problem.stages)
      multiply(cost, parts);
    static_cast<schedule::LinkClass &>(problem) = {};
    for (const auto &[option, ticks] : times.messages) {
      schedule::MessageTime &message = option->message(problem.link);
      message.*option->time = ticks * parts;
      message.betaBytes = schedule::kMebibyte;
    }
  } else {
    scale.perUnit = times.apply(problem);
  }
}

void TimedSchedule::complete(const Statement &statement) {
  setTimes(statement);
  if (std::string error = schedule::check(problem); !error.empty())
    throw std::invalid_argument(error);
  violations = schedule::verify(problem, order);
}

TimedSchedule::TimedSchedule(const std::string &name,
                             const std::map<std::string, std::string> &options,
                             const Sizes &sizes, const Statement &statement)
    : scheme(&schemeOf(name)), name(name), isSplitStated(sizes.splitBackward) {
  problem.workers = checked("workers", sizes.workers);
  problem.stages.resize(checked("stages", sizes.stages));
  const int32_t microBatches = checked("micro_batches", sizes.microBatches);
  checkSize(sizes.stages, microBatches, 1, 1, sizes.splitBackward,
            !sizes.recompute.empty());
  problem.recompute = recomputeOf(sizes);
  state(statement);
  setTimes(statement); // the best values of open options depend on times
  schedule::Request request;
  static_cast<schedule::Workload &>(request) = problem;
  request.microBatches = microBatches;
  request.splitBackward = sizes.splitBackward;
  request.options = schedule::Options(scheme->options);
  for (const auto &[option, value] : options)
    if (std::string error = request.options.set(option, value); !error.empty())
      throw std::invalid_argument(name + ": " + error);
  schedule::PlanOrError made = schedule::makePlan(*scheme, request);
  if (!made.plan)
    throw std::invalid_argument(name + ": " + made.reason);
  this->options = made.plan->options;
  problem = schedule::problemOf(problem, *made.plan);
  checkSize(sizes.stages, microBatches, problem.steps,
            schedule::maxParts(problem.pipelines), problem.splits.any(),
            !sizes.recompute.empty());
  order = std::move(made.plan->order);
  if (!problem.recompute.empty())
    order = schedule::insertRecompute(problem, order);
  complete(statement);
}

TimedSchedule TimedSchedule::fromOrders(const std::string &path,
                                        std::string text,
                                        bool hasZeroBubbleNotation,
                                        const Statement &statement) {
  std::string error;
  const std::string own =
      hasZeroBubbleNotation ? fromZeroBubbleNotation(text) : text;
  const std::optional<OrderFile> file = readOrderFile(path, own, error, text);
  if (!file)
    throw std::invalid_argument(error);
  TimedSchedule made;
  made.name = "given";
  Problem &problem = made.problem;
  problem.workers = checked("workers", std::ssize(file->lines));
  problem.stages.resize(checked("stages", file->stages));
  problem.pipelines = file->pipelines;
  const schedule::OrderText words(problem.workers, problem.pipelines,
                                  problem.updates);
  bool hasSlots = false;
  for (int32_t w = 0; w < problem.workers; ++w) {
    const OrderFile::Line &given = file->lines[w];
    schedule::OrderLine line;
    if (auto wrong = words.read(w, given.text, line))
      throw std::invalid_argument(path + ":" + std::to_string(given.number) +
                                  ":" +
                                  std::to_string(given.column + wrong->offset) +
                                  ": error: " + wrong->message);
    made.order.workers.push_back(std::move(line.actions));
    made.order.slots.push_back(std::move(line.slots));
    hasSlots |= line.hasSlots;
  }
  if (!hasSlots)
    made.order.slots.clear();
  problem.splits =
      schedule::splitsOf(made.order, file->stages, file->microBatches);
  checkSize(file->stages, file->microBatches, 1,
            schedule::maxParts(problem.pipelines), problem.splits.any(),
            !file->recomputed.empty());
  if (!file->recomputed.empty())
    problem.recompute.resize(problem.stages.size(), schedule::Recompute::None);
  for (int32_t stage : file->recomputed)
    problem.recompute[stage] = schedule::Recompute::Early;
  made.state(statement);
  made.complete(statement);
  return made;
}

TimedSchedule TimedSchedule::fromTorchCsv(const std::string &path,
                                          const std::string &text,
                                          const Statement &statement) {
  namespace torch = schedule::torch;
  torch::File file;
  if (std::optional<torch::ReadError> error = torch::read(text, file))
    throw std::invalid_argument(path + ":" + std::to_string(error->line) + ":" +
                                std::to_string(error->column) +
                                ": error: " + error->message);
  if (file.isLowered())
    refuse(path + " to be a compute_only file",
           "a lowered program: chimera-show " + path + " checks it");
  std::string error;
  const std::optional<TorchOrders> orders =
      torchOrders(path, text, file, error);
  if (!orders)
    throw std::invalid_argument(error);
  TimedSchedule made = fromOrders(path, orders->text, false, statement);
  if (!orders->whyNoBlanks.empty())
    made.note =
        "the blank cells of the file are left out: " + orders->whyNoBlanks;
  return made;
}

std::string TimedSchedule::title() const {
  std::string set;
  for (size_t i = 0; i < options.table().size(); ++i)
    if (options.isSet(i))
      set += (set.empty() ? "" : ", ") + std::string(options.table()[i].name) +
             " = " + options.print(i);
  const auto stages = std::ssize(problem.stages);
  std::string text = name + (set.empty() ? "" : " {" + set + "}") + ", " +
                     countWithNoun(stages, "stage");
  if (problem.workers != stages)
    text += " on " + countWithNoun(problem.workers, "worker");
  return text + ", " + countWithNoun(problem.microBatches(), "micro-batch");
}

std::string TimedSchedule::placeOf(int32_t worker, int32_t index) const {
  if (worker < 0)
    return {};
  std::string text = "P" + std::to_string(worker);
  if (index >= 0)
    text += ", action " + std::to_string(index);
  return text;
}

std::vector<std::string> TimedSchedule::orders() const {
  const schedule::OrderText words(problem.workers, problem.pipelines,
                                  problem.updates);
  // A reader of orders without stages assumes that worker w has stage w.
  std::vector<int32_t> plain(problem.stages.size());
  std::iota(plain.begin(), plain.end(), 0);
  const bool isPlain =
      problem.pipelines.size() == 1 && problem.pipelines[0].workers == plain;
  std::vector<std::string> lines;
  for (int32_t w = 0; w < problem.workers; ++w)
    lines.push_back(words.write(order, w, !isPlain));
  return lines;
}

std::string TimedSchedule::module(const std::string &of,
                                  const std::string &more) const {
  std::string text =
      "chimera.pipeline @" + (scheme ? "\"" + name + "\"" : name) +
      (of.empty() ? "" : " " + of) + " stages(" +
      std::to_string(problem.stages.size()) + ") micro_batches(" +
      std::to_string(problem.microBatches()) + ")";
  auto add = [&](const char *clause, const std::string &value) {
    text += " " + std::string(clause) + "(" + value + ")";
  };
  if (problem.workers != std::ssize(problem.stages))
    add("workers", std::to_string(problem.workers));
  if (problem.width > 1)
    add("data_parallel", std::to_string(problem.width));
  std::vector<int32_t> recomputed;
  bool isFused = false;
  for (size_t s = 0; s < problem.recompute.size(); ++s)
    if (problem.recompute[s] != schedule::Recompute::None) {
      recomputed.push_back(static_cast<int32_t>(s));
      isFused = problem.recompute[s] == schedule::Recompute::Fused;
    }
  if (!recomputed.empty())
    add("recompute", listOf(recomputed) + (isFused ? " fused" : ""));
  for (const schedule::NamedPolicy &row : schedule::kPolicies)
    if (row.policy == problem.policy &&
        row.policy != schedule::AllReducePolicy::Lazy)
      add("all_reduce", row.name);
  if (problem.bucketBytes > 0)
    add("bucket_bytes", std::to_string(problem.bucketBytes));
  if (!more.empty())
    text += " " + more;
  if (scheme) {
    std::string set;
    for (size_t i = 0; i < options.table().size(); ++i)
      if (options.isSet(i)) {
        const std::string value = options.print(i);
        set += (set.empty() ? "" : ", ") +
               std::string(options.table()[i].name) + " = " +
               (options.table()[i].words.empty() ? value : "\"" + value + "\"");
      }
    add("schedule",
        "\"" + name + "\"" + (set.empty() ? "" : ", {" + set + "}"));
    if (isSplitStated)
      text += " split_backward";
    return text + "\n";
  }
  text += " {\n";
  text += describeDirections(problem.pipelines);
  const std::vector<std::string> lines = orders();
  for (size_t w = 0; w < lines.size(); ++w)
    text += "  chimera.order " + std::to_string(w) + " \"" + lines[w] + "\"\n";
  return text + "}\n";
}

void TimedSchedule::requireValid() const {
  if (violations.empty())
    return;
  const schedule::Violation &first = violations.front();
  const std::string place = placeOf(first.worker, first.index);
  throw std::invalid_argument(
      "expected a valid schedule: " + (place.empty() ? "" : place + ": ") +
      first.message +
      (violations.size() == 1
           ? ""
           : " (and " + std::to_string(violations.size() - 1) +
                 " more violations, see verify())"));
}
