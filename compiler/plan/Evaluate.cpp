//===- Evaluate.cpp - What a plan takes -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Evaluate.h"

#include "compiler/schedule/Memory.h"
#include "compiler/schedule/Recompute.h"

#include <algorithm>
#include <numeric>

namespace chimera::plan {

using schedule::Kind;
using schedule::Problem;
using schedule::Recompute;
using schedule::Schedule;

double workBound(const LayerTable &table, const Choice &choice) {
  double layers = 0;
  for (const LayerCost &layer : table.layers)
    layers += static_cast<double>(layer.forward + layer.backward());
  return layers * choice.microBatches / choice.workers;
}

/// What the steps of a problem are at least made of.
class StepParts {
public:
  explicit StepParts(const Problem &problem) : problem(problem) {}

  int64_t busiest() const {
    std::vector<int64_t> busy(problem.workers, 0);
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        busy[pipeline.workers[s]] +=
            std::ssize(pipeline.microBatches) * timeOf(problem.stages[s]) +
            (isFlush() ? problem.stages[s].update : 0);
    return std::ranges::max(busy);
  }

  bool isFlush() const { return !schedule::stepsOverlap(problem.updates); }

  /// One micro-batch's way from the first stage to a stage and back, and all
  /// that the pipeline does there in between, at the stage where that takes
  /// longest. The way back begins with any part of a backward, and needs no
  /// weight gradient.
  int64_t wayAndWork(const schedule::Pipeline &pipeline) const {
    int64_t way = 0, most = 0;
    for (const schedule::StageCost &cost : problem.stages) {
      int64_t each = cost.forward + backOf(cost);
      most = std::max(most, way + std::ssize(pipeline.microBatches) * each);
      if (pipeline.backwardParts == 1)
        way += each;
    }
    return most + problem.stages.front().update;
  }

private:
  bool areSplit() const { return problem.splits.any(); }
  int64_t timeOf(const schedule::StageCost &cost) const {
    int64_t halves = cost.inputGradient + cost.weightGradient;
    return cost.forward +
           (areSplit() ? std::min(cost.backward, halves) : cost.backward);
  }
  int64_t backOf(const schedule::StageCost &cost) const {
    return areSplit() ? std::min(cost.backward, cost.inputGradient)
                      : cost.backward;
  }

  const Problem &problem;
};

int64_t stepBound(const Problem &problem) {
  StepParts parts(problem);
  int64_t bound = parts.busiest();
  if (parts.isFlush())
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      bound = std::max(bound, parts.wayAndWork(pipeline));
  return bound;
}

TooLarge heldBound(const Problem &problem) {
  std::vector<int64_t> held = residentBytes(problem);
  if (!schedule::stepsOverlap(problem.updates))
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        held[pipeline.workers[s]] += problem.bytesOf(s).gradient();
  auto largest = std::ranges::max_element(held);
  return {*largest, static_cast<int32_t>(largest - held.begin())};
}

Evaluator::Evaluator(const Question &question, const Space &space)
    : question(question) {
  for (const Choice &choice : space.choices)
    if (!tables.contains(choice.microBatchSize))
      tables.emplace(
          choice.microBatchSize,
          question.model.table(choice.microBatchSize, &question.machine));
}

double Evaluator::guess(const Choice &choice) const {
  double work = workBound(tables.at(choice.microBatchSize), choice);
  return work * (choice.microBatches + choice.workers - 1) /
         choice.microBatches;
}

/// What `choice` asks its scheme for.
static schedule::Request requestOf(const Question &question,
                                   const LayerTable &table,
                                   const Choice &choice,
                                   const std::vector<CutStage> &stages) {
  schedule::Request request;
  request.workers = choice.workers;
  request.width = choice.width;
  for (const CutStage &stage : stages) {
    request.stages.push_back(stage.cost);
    request.bytes.push_back(stage.bytes);
  }
  request.link = question.machine.link;
  request.allReduceMessage = question.machine.allReduceMessage;
  request.tiedBytes = tiedBytes(table, stages);
  request.bucketBytes = question.pins.bucketBytes;
  request.memoryCaps.assign(choice.workers, question.machine.memory);
  request.microBatches = choice.microBatches;
  request.splitBackward = choice.split;
  request.options = choice.options;
  return request;
}

/// Empty, or why the parts of its backwards do not fit the choice.
static std::string checkParts(const Choice &choice,
                              const std::vector<CutStage> &stages,
                              int64_t parts) {
  if (choice.microBatchSize % parts != 0)
    return "expected a micro-batch size that is a multiple of " +
           std::to_string(parts) + ", the parts of a backward";
  for (const CutStage &stage : stages)
    if (stage.bytes.boundary % parts != 0)
      return "expected boundaries that are multiples of " +
             std::to_string(parts) + ", the parts of a backward";
  return {};
}

Evaluator::Asked
Evaluator::askFor(const Choice &choice,
                  const std::vector<Recompute> &recompute) const {
  const LayerTable &table = tables.at(choice.microBatchSize);
  Asked asked;
  asked.stages = cutModel(table, choice.stages, recompute);
  asked.request = requestOf(question, table, choice, asked.stages);
  asked.request.recompute = recompute;
  return asked;
}

std::variant<Solution, Impossible>
Evaluator::solve(const Choice &choice,
                 const std::vector<Recompute> &recompute) const {
  const LayerTable &table = tables.at(choice.microBatchSize);
  auto [stages, request] = askFor(choice, recompute);
  Solution solution;
  solution.stages = std::move(stages);
  schedule::Made made = schedule::makePlan(*choice.scheme, request);
  if (!made.plan)
    return Impossible{made.reason};
  if (request.tiedBytes > 0 && schedule::stepsOverlap(made.plan->updates))
    return Impossible{"expected a schedule with a flush for a tied model"};
  if (int64_t parts = schedule::mostParts(made.plan->pipelines); parts > 1) {
    if (std::string wrong = checkParts(choice, solution.stages, parts);
        !wrong.empty())
      return Impossible{wrong};
    if (std::string wrong = question.model.check(choice.microBatchSize, parts,
                                                 &question.machine);
        !wrong.empty())
      return Impossible{wrong};
    solution.stages = cutModel(table, choice.stages, recompute, parts);
    for (size_t s = 0; s < solution.stages.size(); ++s)
      request.stages[s] = solution.stages[s].cost;
  }
  solution.problem = problemOf(request, *made.plan);
  if (std::string wrong = check(solution.problem); !wrong.empty())
    return Impossible{wrong};
  solution.order = std::move(made.plan->order);
  if (!recompute.empty())
    solution.order = insertRecompute(solution.problem, solution.order);
  return solution;
}

Solution Evaluator::solve(const Proposal &proposal) const {
  auto solved = solve(proposal.choice, proposal.recompute);
  Solution solution = std::move(std::get<Solution>(solved));
  solution.problem.policy = proposal.policy;
  return solution;
}

/// The most bytes that each worker holds.
static std::vector<int64_t> peaksOf(const Solution &solution) {
  std::vector<int64_t> peaks = residentBytes(solution.problem);
  for (size_t w = 0; w < peaks.size(); ++w)
    peaks[w] =
        memoryPeak(solution.problem, solution.order.workers[w], peaks[w]).bytes;
  return peaks;
}

/// Has each worker that holds too much recompute its largest stash that is not
/// recomputed yet. False where one has none.
static bool recomputeMore(const Solution &solution,
                          const std::vector<int64_t> &peaks, int64_t cap,
                          std::vector<Recompute> &recompute) {
  recompute.resize(solution.stages.size(), Recompute::None);
  std::vector<Recompute> more = recompute;
  for (size_t w = 0; w < peaks.size(); ++w) {
    if (peaks[w] <= cap)
      continue;
    std::optional<size_t> largest;
    bool isHelped = false; // by a stage that another worker gives up too
    for (const schedule::Pipeline &pipeline : solution.problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s) {
        if (pipeline.workers[s] != static_cast<int32_t>(w) ||
            recompute[s] != Recompute::None)
          continue;
        isHelped |= more[s] != Recompute::None;
        if (!largest || solution.stages[s].bytes.stash >
                            solution.stages[*largest].bytes.stash)
          largest = s;
      }
    if (!largest)
      return false;
    if (!isHelped)
      more[*largest] = Recompute::Early;
  }
  recompute = std::move(more);
  return true;
}

Outcome Evaluator::evaluate(const Choice &choice,
                            const IsHopeless &isHopeless) const {
  const Pins &pins = question.pins;
  if (double bound = workBound(tables.at(choice.microBatchSize), choice);
      isHopeless(bound, 0))
    return Hopeless{bound};
  Asked asked = askFor(choice, {});
  Problem placed = problemOf(
      asked.request, schedule::placePlan(*choice.scheme, asked.request));
  if (TooLarge held = heldBound(placed);
      held.peakBytes > question.machine.memory)
    return held;
  if (auto bound = static_cast<double>(stepBound(placed));
      isHopeless(bound, heldBound(placed).peakBytes))
    return Hopeless{bound};
  Proposal proposal{choice, {}, {}, 0, 0, 0};
  if (pins.recomputation == Recomputation::All)
    proposal.recompute.assign(choice.stages, Recompute::Early);
  Solution solution;
  while (true) {
    auto solved = solve(choice, proposal.recompute);
    if (auto *impossible = std::get_if<Impossible>(&solved))
      return std::move(*impossible);
    solution = std::move(std::get<Solution>(solved));
    std::vector<int64_t> peaks = peaksOf(solution);
    auto largest = std::ranges::max_element(peaks);
    proposal.peakBytes = *largest;
    proposal.peakWorker = static_cast<int32_t>(largest - peaks.begin());
    if (proposal.peakBytes <= question.machine.memory)
      break;
    if (pins.recomputation != Recomputation::Least ||
        !recomputeMore(solution, peaks, question.machine.memory,
                       proposal.recompute))
      return TooLarge{proposal.peakBytes, proposal.peakWorker};
  }
  if (auto bound = static_cast<double>(stepBound(solution.problem));
      isHopeless(bound, proposal.peakBytes))
    return Hopeless{bound};
  // None beats the last, with which every sum starts as early as it can.
  std::vector<schedule::AllReducePolicy> policies;
  for (const schedule::NamedPolicy &policy : schedule::kPolicies)
    if (pins.policies.empty() ||
        std::ranges::count(pins.policies, policy.policy) > 0)
      policies.push_back(policy.policy);
  proposal.policy = policies.back();
  auto stepWith = [&](schedule::AllReducePolicy policy) {
    solution.problem.policy = policy;
    return stepPeriod(solution.problem, solution.order);
  };
  proposal.step = stepWith(proposal.policy);
  if (isHopeless(proposal.step, proposal.peakBytes))
    return Hopeless{proposal.step};
  for (schedule::AllReducePolicy policy : policies)
    if (policy != proposal.policy && stepWith(policy) <= proposal.step) {
      proposal.policy = policy;
      break;
    }
  return proposal;
}

} // namespace chimera::plan
