//===- AnswerJson.cpp - Answers as JSON -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/AnswerJson.h"

#include "compiler/planner/search/AnswerFormats.h"

#include <nlohmann/json.hpp>

namespace chimera {

using nlohmann::ordered_json;

/// The word for a recomputation in a pipeline's `recompute` clause.
static const char *wordOf(schedule::Recompute how) {
  switch (how) {
  case schedule::Recompute::None:
    return "none";
  case schedule::Recompute::Early:
    return "early";
  case schedule::Recompute::Fused:
    return "fused";
  }
  return "";
}

static ordered_json optionsOf(const plan::Choice &choice) {
  ordered_json object = ordered_json::object();
  std::span<const schedule::Option> table = choice.options.table();
  for (size_t i = 0; i < table.size(); ++i) {
    ordered_json &value = object[std::string(table[i].name)];
    if (table[i].words.empty())
      value = choice.options[i];
    else
      value = choice.options.print(i);
  }
  return object;
}

/// The word of each stage's recomputation.
static ordered_json recomputeOf(const plan::Proposal &proposal) {
  std::vector<const char *> words(proposal.choice.stages, "none");
  for (size_t stage = 0; stage < proposal.recompute.size(); ++stage)
    words[stage] = wordOf(proposal.recompute[stage]);
  return words;
}

static ordered_json planOf(const plan::Question &question,
                           const plan::StepBreakdown &breakdown) {
  const plan::Proposal &proposal = breakdown.proposal;
  const plan::Choice &choice = proposal.choice;
  ordered_json shares = ordered_json::object();
  for (const plan::StepShare &share : breakdown.shares)
    shares[share.name] = share.time;
  ordered_json limit; // null if only computation takes time
  if (const plan::StepShare *share = breakdown.largestAvoidableShare())
    limit = {{"share", share->name},
             {"of_step", share->time / proposal.stepTime}};
  return {{"name", plan::nameOf(choice)},
          {"schedule", choice.scheme->name},
          {"options", optionsOf(choice)},
          {"workers", choice.workers},
          {"data_parallel", choice.width},
          {"stages", choice.stages},
          {"micro_batches", choice.microBatches},
          {"micro_batch_size", choice.microBatchSize},
          {"split_backward", choice.splitBackward},
          {"recompute", recomputeOf(proposal)},
          {"all_reduce", plan::nameOf(proposal.policy)},
          {"step", proposal.stepTime},
          {plan::rateName(question), plan::rateOf(question, proposal.stepTime)},
          {"limit", limit},
          {"idle_of_step", breakdown.idleShare()},
          {"shares", shares},
          {"peak_bytes", proposal.peakBytes},
          {"peak_worker", proposal.peakWorker}};
}

static ordered_json
plansOf(const plan::Question &question,
        const std::vector<plan::StepBreakdown> &breakdowns) {
  ordered_json plans = ordered_json::array();
  for (const plan::StepBreakdown &breakdown : breakdowns)
    plans.push_back(planOf(question, breakdown));
  return plans;
}

static ordered_json scheduleOf(const plan::OutcomeCounts &counts) {
  ordered_json smallest, reason; // null if there is none
  if (counts.smallest)
    smallest = {{"plan", counts.smallestName},
                {"peak_bytes", counts.smallest->peakBytes}};
  if (counts.refusal)
    reason = counts.refusal->choice + ": " + counts.refusal->reason;
  return {{"schedule", counts.scheme->name}, {"plans", counts.choices},
          {"simulated", counts.simulated},   {"ruled_out", counts.ruledOut},
          {"too_large", counts.tooLarge},    {"smallest_too_large", smallest},
          {"impossible", counts.impossible}, {"why_impossible", reason}};
}

/// The name of `op`. A JSON null if `op` is null.
template <typename Op> static ordered_json symbolOf(Op op) {
  return op ? ordered_json(op.getSymName().str()) : ordered_json();
}

std::string jsonOf(const plan::Question &question, PlannerOps ops,
                   const PlannerResult &result,
                   const std::vector<std::string> &assumptions) {
  ordered_json schedules = ordered_json::array();
  for (const plan::OutcomeCounts &counts : result.answer.outcomeCounts)
    schedules.push_back(scheduleOf(counts));
  ordered_json refusals = ordered_json::array();
  for (const plan::Refusal &refusal : result.space.refusals)
    refusals.push_back({{"plan", refusal.choice}, {"reason", refusal.reason}});
  ordered_json bucketBytes, noPlanReason; // null if there is none
  if (question.pins.bucketBytes > 0)
    bucketBytes = question.pins.bucketBytes;
  if (result.ranked.empty())
    noPlanReason = result.noPlanReason();
  DataType weights = ops.weights.value_or(DataType::F32);
  DataType activations = ops.activations.value_or(weights);
  MachineOp machine = ops.machine;
  ordered_json document = {
      {"time_unit", "ns"},
      {"model", symbolOf(ops.model)},
      {"machine", symbolOf(machine)},
      {"training", symbolOf(ops.training)},
      {"weight_type", stringifyDataType(weights).str()},
      {"activation_type", stringifyDataType(activations).str()},
      {"batch", question.batch},
      {"devices", question.machine.devices},
      {"memory_bytes", machine.getMemory()},
      {"reserved_bytes", machine.getReserved().value_or(0)},
      {"bucket_bytes", bucketBytes},
      {"assumed", assumptions},
      {"passed_over", result.rejectedPlans},
      {"why_no_plan", noPlanReason},
      {"plans", plansOf(question, result.ranked)},
      {"best_of_schedules", plansOf(question, result.ofSchemes)},
      {"schedules", schedules},
      {"not_considered", refusals}};
  // File names may contain bytes that are not UTF-8. Replace such bytes.
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace chimera
