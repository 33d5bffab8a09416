//===- Evaluate.cpp - Step time and memory of a plan ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Evaluate.h"

#include "compiler/planner/search/PlanBounds.h"
#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Memory.h"

#include <algorithm>
#include <ranges>

namespace chimera::plan {

using schedule::Kind;
using schedule::Problem;
using schedule::Recompute;
using schedule::Schedule;

Evaluator::Evaluator(const Question &question) : question(question) {}

const cost::LayerTable &Evaluator::tableOf(const Choice &choice,
                                           int64_t parts) const {
  std::lock_guard lock(mutex);
  auto [entry, isNew] = tables.try_emplace({choice.microBatchSize, parts});
  if (isNew)
    entry->second =
        question.model.table(choice.microBatchSize, parts, &question.machine);
  return entry->second;
}

double Evaluator::estimateStep(const Choice &choice) const {
  double work = 0;
  for (const cost::LayerCost &layer : tableOf(choice).layers)
    work += static_cast<double>(layer.forward + layer.backward);
  return work / choice.workers * (choice.microBatches + choice.workers - 1) /
         choice.microBatches;
}

/// The request from which the choice's scheme makes a plan.
static schedule::Request requestOf(const Question &question,
                                   const cost::LayerTable &table,
                                   const Choice &choice,
                                   const std::vector<cost::CutStage> &stages) {
  schedule::Request request;
  static_cast<schedule::Network &>(request) = question.machine.network;
  request.workers = choice.workers;
  request.width = choice.width;
  for (const cost::CutStage &stage : stages) {
    request.stages.push_back(stage.cost);
    request.bytes.push_back(stage.bytes);
  }
  request.tiedBytes = cost::tiedBytes(table, stages);
  request.clips = question.clips;
  request.bucketBytes = question.pins.bucketBytes;
  request.memoryCaps.assign(choice.workers, question.machine.memory);
  request.microBatches = choice.microBatches;
  request.splitBackward = choice.splitBackward;
  request.options = choice.options;
  return request;
}

/// Returns an error if the choice's micro-batches cannot be split into `parts`
/// parts, else an empty text.
static std::string checkParts(const Question &question, const Choice &choice,
                              int64_t parts) {
  if (choice.microBatchSize % parts != 0)
    return "expected a micro-batch size that is a multiple of " +
           std::to_string(parts) + ", the parts of a backward, got " +
           std::to_string(choice.microBatchSize);
  return question.model.check(choice.microBatchSize, parts, &question.machine);
}

/// Returns an error if the bytes of the boundary between two stages are not a
/// multiple of `parts`, else an empty text.
static std::string checkBoundaries(const std::vector<cost::CutStage> &stages,
                                   int64_t parts) {
  for (const cost::CutStage &stage : stages)
    if (stage.bytes.boundary % parts != 0)
      return "expected boundaries that are multiples of " +
             std::to_string(parts) + ", the parts of a backward";
  return {};
}

const std::vector<cost::CutStage> &
Evaluator::cutWithoutRecompute(const Choice &choice, int64_t parts) const {
  const cost::LayerTable &table = tableOf(choice, parts);
  std::lock_guard lock(mutex);
  auto [entry, isNew] = cutsWithoutRecompute.try_emplace(
      {choice.microBatchSize, choice.stages, parts});
  if (isNew)
    entry->second = cost::cutIntoStages(table, choice.stages, {}, parts);
  return entry->second;
}

Evaluator::StagesAndRequest
Evaluator::requestFor(const Choice &choice,
                      const std::vector<Recompute> &recompute,
                      int64_t parts) const {
  const cost::LayerTable &table = tableOf(choice, parts);
  StagesAndRequest result;
  result.stages = recompute.empty() ? cutWithoutRecompute(choice, parts)
                                    : cost::cutIntoStages(table, choice.stages,
                                                          recompute, parts);
  result.request = requestOf(question, table, choice, result.stages);
  result.request.recompute = recompute;
  return result;
}

std::variant<Solution, Impossible>
Evaluator::solutionWithoutOrder(const Choice &choice,
                                const schedule::Plan &plan,
                                const std::vector<Recompute> &recompute) const {
  int64_t parts = schedule::maxParts(plan.pipelines);
  if (parts > 1)
    if (std::string wrong = checkParts(question, choice, parts); !wrong.empty())
      return Impossible{wrong};
  auto [stages, request] = requestFor(choice, recompute, parts);
  if (request.tiedBytes > 0 && schedule::stepsOverlap(plan.updates))
    return Impossible{"expected a schedule with a flush for a tied model"};
  if (request.clips && schedule::stepsOverlap(plan.updates))
    return Impossible{"expected a schedule with a flush for clip_norm"};
  if (std::string wrong = checkBoundaries(stages, parts); !wrong.empty())
    return Impossible{wrong};
  Solution solution;
  solution.stages = std::move(stages);
  solution.problem = problemOf(request, plan);
  if (std::string wrong = check(solution.problem); !wrong.empty())
    return Impossible{wrong};
  return solution;
}

Solution Evaluator::solutionOf(const Proposal &proposal) const {
  const Choice &choice = proposal.choice;
  schedule::PlanOrError made = schedule::makePlan(
      *choice.scheme, requestFor(choice, proposal.recompute).request);
  auto solved = solutionWithoutOrder(choice, *made.plan, proposal.recompute);
  Solution solution = std::move(std::get<Solution>(solved));
  solution.order = proposal.recompute.empty()
                       ? std::move(made.plan->order)
                       : insertRecompute(solution.problem, made.plan->order);
  solution.problem.policy = proposal.policy;
  return solution;
}

/// Peak bytes of each worker if the workers run `order`.
static std::vector<int64_t> peakBytesOf(const Solution &solution,
                                        const Schedule &order) {
  std::vector<int64_t> peaks = residentBytes(solution.problem);
  for (const schedule::Pipeline &pipeline : solution.problem.pipelines)
    for (size_t s = 0; s < pipeline.workers.size(); ++s)
      peaks[pipeline.workers[s]] += solution.stages[s].bytes.gradient();
  // The bytes for the loss of one micro-batch, and for the buffers that
  // all-reduce it.
  constexpr int64_t kLossBytes = 32;
  for (const schedule::Pipeline &pipeline : solution.problem.pipelines)
    peaks[pipeline.workers.back()] +=
        kLossBytes * std::ssize(pipeline.microBatches);
  // `peaks` already includes the sums of gradients. So set the gradients of
  // this copy of the problem to 0 bytes (StageBytes::gradient).
  Problem problem = solution.problem;
  for (schedule::StageBytes &stage : problem.bytes)
    stage.parameterCopy = stage.weights;
  schedule::MemoryPeaks memory(problem);
  for (size_t w = 0; w < peaks.size(); ++w)
    peaks[w] = memory.peakOf(order.workers[w], peaks[w]).bytes;
  return peaks;
}

/// A lower bound of the step time. It counts all actions of each worker,
/// including recomputes.
static double workBound(const Solution &solution) {
  std::vector<int64_t> busy;
  for (const std::vector<schedule::Action> &worker : solution.order.workers) {
    int64_t &sum = busy.emplace_back(0);
    for (const schedule::Action &action : worker)
      sum += solution.problem.cost(action);
    sum /= solution.problem.steps;
  }
  return minStepTime(solution.problem, busy);
}

/// For each pipeline and stage, the largest number of micro-batches whose
/// stashes are kept at the same time. Requires an order without recomputes.
static std::vector<int64_t> maxStashCounts(const schedule::Plan &plan,
                                           size_t stages) {
  std::vector<int64_t> most(plan.pipelines.size() * stages), held(most.size());
  for (const std::vector<schedule::Action> &worker : plan.order.workers)
    for (const schedule::Action &action : worker) {
      size_t key = action.pipeline * stages + action.stage;
      if (action.kind == Kind::Forward)
        held[key] += action.microBatches;
      else if (schedule::makesGradient(action.kind) &&
               action.part + 1 == action.parts)
        --held[key];
      most[key] = std::max(most[key], held[key]);
    }
  return most;
}

/// Selects more stages to recompute on each worker that needs more than `cap`
/// bytes, until the worker may fit. The stages with the largest stashes come
/// first. The estimate assumes that every stage has its largest number of
/// stashes at the time of the worker's peak. Returns false if some worker needs
/// more than `cap` and already recomputes all its stages.
static bool addRecompute(const Solution &solution,
                         const std::vector<int64_t> &stashes,
                         const std::vector<int64_t> &peaks, int64_t cap,
                         std::vector<Recompute> &recompute) {
  const size_t stages = solution.stages.size();
  recompute.resize(stages, Recompute::None);
  std::vector<Recompute> more = recompute;
  for (size_t w = 0; w < peaks.size(); ++w) {
    int64_t excess = peaks[w] - cap;
    if (excess <= 0)
      continue;
    // For each stage of the worker: whether another worker already needs to
    // recompute it, the bytes that recomputing frees, and the stage. All
    // replicas of a stage are recomputed together. So stages that another
    // worker needs to recompute come first.
    std::vector<std::tuple<bool, int64_t, size_t>> frees;
    for (size_t p = 0; p < solution.problem.pipelines.size(); ++p)
      for (size_t s = 0; s < stages; ++s)
        if (solution.problem.pipelines[p].workers[s] ==
                static_cast<int32_t>(w) &&
            recompute[s] == Recompute::None)
          frees.emplace_back(
              more[s] != Recompute::None,
              solution.stages[s].bytes.stash * stashes[p * stages + s], s);
    if (frees.empty())
      return false;
    std::ranges::sort(frees, std::greater());
    for (auto [isGivenUp, bytes, stage] : frees) {
      if (excess <= 0)
        break;
      more[stage] = Recompute::Early;
      excess -= bytes;
    }
  }
  recompute = std::move(more);
  return true;
}

std::variant<Solution, Impossible, TooLarge>
Evaluator::makeFit(schedule::Plan plan, int64_t memory, Recomputation allowed,
                   Proposal &proposal) const {
  if (allowed == Recomputation::All || allowed == Recomputation::Fused)
    proposal.recompute.assign(proposal.choice.stages,
                              allowed == Recomputation::All ? Recompute::Early
                                                            : Recompute::Fused);
  std::vector<int64_t> stashes; // computed when first needed
  while (true) {
    auto solved =
        solutionWithoutOrder(proposal.choice, plan, proposal.recompute);
    if (auto *impossible = std::get_if<Impossible>(&solved))
      return std::move(*impossible);
    Solution &solution = std::get<Solution>(solved);
    const bool recomputes = !proposal.recompute.empty();
    if (recomputes)
      solution.order = insertRecompute(solution.problem, plan.order);
    std::vector<int64_t> peaks =
        peakBytesOf(solution, recomputes ? solution.order : plan.order);
    auto largest = std::ranges::max_element(peaks);
    proposal.peakBytes = *largest;
    proposal.peakWorker = static_cast<int32_t>(largest - peaks.begin());
    if (proposal.peakBytes <= memory) {
      if (!recomputes)
        solution.order = std::move(plan.order);
      return std::move(solution);
    }
    if (stashes.empty())
      stashes = maxStashCounts(plan, solution.stages.size());
    if (allowed != Recomputation::Least ||
        !addRecompute(solution, stashes, peaks, memory, proposal.recompute))
      return TooLarge{proposal.peakBytes};
  }
}

void Evaluator::setPolicyAndStepTime(Solution &solution,
                                     const CanRuleOut &canRuleOut,
                                     Proposal &proposal) const {
  const Pins &pins = question.pins;
  std::vector<schedule::AllReducePolicy> policies;
  for (const schedule::NamedPolicy &policy : schedule::kPolicies)
    if (pins.policies.empty() ||
        std::ranges::count(pins.policies, policy.policy) > 0)
      policies.push_back(policy.policy);
  schedule::StepPeriods periods(solution.problem, solution.order);
  proposal.policy = policies.back();
  proposal.stepTime = periods.periodWith(proposal.policy);
  // The last policy starts each all-reduce as early as possible, so no other
  // policy is faster. If the step is too long with the last policy, the others
  // need no test. Workers that share cores are an exception: a worker that
  // waits leaves its cores to the others.
  if (!schedule::sharesCores(solution.problem) &&
      canRuleOut(proposal.stepTime, proposal.peakBytes))
    return;
  policies.pop_back();
  for (schedule::AllReducePolicy policy : std::views::reverse(policies))
    if (double step = periods.periodWith(policy); step <= proposal.stepTime) {
      proposal.policy = policy;
      proposal.stepTime = step;
    }
}

Outcome Evaluator::evaluate(const Choice &choice, const CanRuleOut &canRuleOut,
                            int64_t memory, Recomputation allowed) const {
  schedule::Request request = requestFor(choice, {}).request;
  Problem placed =
      problemOf(request, schedule::placePlan(*choice.scheme, request));
  int64_t held = memoryBound(placed);
  if (held > memory)
    return TooLarge{held};
  // This bound is valid for every cut. So it is still valid if makeFit adds
  // recomputes and cuts the model again.
  double cut = stepBoundOfAnyCut(tableOf(choice), placed);
  if (canRuleOut(cut, held))
    return RuledOut{cut};
  schedule::PlanOrError made = schedule::makePlan(*choice.scheme, request);
  if (!made.plan)
    return Impossible{made.reason};
  Proposal proposal{choice, {}, {}, 0, 0, 0};
  auto fit = makeFit(std::move(*made.plan), memory, allowed, proposal);
  if (auto *impossible = std::get_if<Impossible>(&fit))
    return std::move(*impossible);
  if (auto *tooLarge = std::get_if<TooLarge>(&fit))
    return *tooLarge;
  Solution &solution = std::get<Solution>(fit);
  if (double bound = std::max(stepBound(solution.problem), workBound(solution));
      canRuleOut(bound, proposal.peakBytes))
    return RuledOut{bound};
  setPolicyAndStepTime(solution, canRuleOut, proposal);
  if (canRuleOut(proposal.stepTime, proposal.peakBytes))
    return RuledOut{proposal.stepTime};
  return proposal;
}

} // namespace chimera::plan
