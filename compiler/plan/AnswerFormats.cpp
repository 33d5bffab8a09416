//===- AnswerFormats.cpp - Answers as tables and JSON ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/AnswerFormats.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/TextTable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace chimera::plan {

using nlohmann::ordered_json;
using schedule::percent;
using schedule::shortBytes;
using schedule::textTable;
using Rows = std::vector<std::vector<std::string>>;

static std::string timeOf(double nanoseconds) {
  static const schedule::TimeScale kScale{schedule::findTimeUnit("ns"), 1};
  return schedule::roundedTime(nanoseconds, kScale);
}

/// Of what the model's samples consist, or of samples.
static double rateOf(const Question &question, double step) {
  int64_t each = std::max<int64_t>(question.model.tokens(), 1);
  return static_cast<double>(question.batch * each) / (step * 1e-9);
}

static std::string rateName(const Question &question) {
  return question.model.tokens() > 0 ? "tokens/s" : "samples/s";
}

static std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1000 ? "%.4g" : "%.0f", value);
  return text;
}

static const char *nameOf(schedule::AllReducePolicy policy) {
  for (const schedule::NamedPolicy &named : schedule::kPolicies)
    if (named.policy == policy)
      return named.name;
  return "";
}

std::string tableOf(const Question &question, std::span<const Detail> details) {
  Rows rows = {{"", "schedule", "limit", "D", "W", "N", "B", "stages",
                "recomputed", "all-reduces", "step", rateName(question), "idle",
                "all-reduce", "update", "peak bytes"}};
  for (size_t i = 0; i < details.size(); ++i) {
    const Detail &detail = details[i];
    const Choice &choice = detail.proposal.choice;
    const Share *limit = detail.limit();
    rows.push_back(
        {std::to_string(i + 1),
         scheduleOf(choice) + (choice.split ? " split" : ""),
         limit
             ? limit->name + (" " + percent(limit->time / detail.proposal.step))
             : "",
         std::to_string(choice.workers), std::to_string(choice.width),
         std::to_string(choice.microBatches),
         std::to_string(choice.microBatchSize), std::to_string(choice.stages),
         detail.recomputed == 0 ? "-" : std::to_string(detail.recomputed),
         detail.hasSums ? nameOf(detail.proposal.policy) : "-",
         timeOf(detail.proposal.step),
         rounded(rateOf(question, detail.proposal.step)),
         percent(detail.idleShare()), timeOf(detail.timeOf(Part::AllReduce)),
         timeOf(detail.timeOf(Part::Update)),
         shortBytes(detail.proposal.peakBytes)});
  }
  return textTable(rows, 3);
}

std::string talliesOf(const Question &question, const Space &space,
                      const Answer &answer) {
  Rows rows = {{"schedule", "plans", "simulated", "ruled out by a bound",
                "too large", "impossible"}};
  for (const Tally &tally : answer.tallies)
    rows.push_back(
        {tally.scheme->name, std::to_string(tally.choices),
         std::to_string(tally.simulated), std::to_string(tally.hopeless),
         std::to_string(tally.tooLarge), std::to_string(tally.impossible)});
  std::string text = textTable(rows, 1);
  for (const Tally &tally : answer.tallies) {
    if (tally.smallest && tally.simulated + tally.hopeless == 0)
      text += "no plan of " + std::string(tally.scheme->name) + " fits into " +
              shortBytes(question.machine.memory) +
              ": a worker holds at least " +
              shortBytes(tally.smallest->peakBytes) + ", with " +
              tally.smallestName + "\n";
    if (!tally.reason.empty())
      text += "impossible: " + tally.reason + "\n";
  }
  for (const Refusal &refusal : space.refusals)
    text += "not considered: " + refusal.what + ": " + refusal.reason + "\n";
  return text;
}

std::string explain(const Detail &one, const Detail &other) {
  Rows rows = {{"", "one", "other", "difference"}};
  auto row = [&](const std::string &name, double a, double b) {
    std::string difference = timeOf(std::abs(b - a));
    rows.push_back({name, timeOf(a), timeOf(b),
                    (b > a   ? "+"
                     : b < a ? "-"
                             : "") +
                        difference});
  };
  const Share *most = nullptr;
  double largest = 0;
  for (size_t i = 0; i < one.shares.size(); ++i) {
    double a = one.shares[i].time, b = other.shares[i].time;
    row(one.shares[i].name, a, b);
    if (std::abs(b - a) > largest) {
      largest = std::abs(b - a);
      most = &one.shares[i];
    }
  }
  row("step", one.proposal.step, other.proposal.step);
  rows.push_back({"peak bytes", shortBytes(one.proposal.peakBytes),
                  shortBytes(other.proposal.peakBytes), ""});
  std::string text = "one:   " + nameOf(one.proposal.choice) +
                     "\nother: " + nameOf(other.proposal.choice) + "\n\n" +
                     textTable(rows, 1);
  if (most)
    text += "\nThe largest difference is " + std::string(most->name) + ": " +
            most->summary + ".\n";
  return text;
}

static ordered_json objectOf(const Question &question, const Detail &detail) {
  const Proposal &proposal = detail.proposal;
  const Choice &choice = proposal.choice;
  ordered_json options = ordered_json::object();
  for (size_t i = 0; i < choice.options.table().size(); ++i)
    options[std::string(choice.options.table()[i].name)] =
        choice.options.print(i);
  ordered_json recomputed = ordered_json::array();
  for (size_t s = 0; s < proposal.recompute.size(); ++s)
    if (proposal.recompute[s] != schedule::Recompute::None)
      recomputed.push_back(s);
  ordered_json shares = ordered_json::object();
  for (const Share &share : detail.shares)
    shares[share.name] = share.time;
  return {{"schedule", choice.scheme->name},
          {"options", options},
          {"workers", choice.workers},
          {"data_parallel", choice.width},
          {"stages", choice.stages},
          {"micro_batches", choice.microBatches},
          {"micro_batch_size", choice.microBatchSize},
          {"split_backward", choice.split},
          {"recompute", recomputed},
          {"all_reduce", nameOf(proposal.policy)},
          {"step", proposal.step},
          {rateName(question), rateOf(question, proposal.step)},
          {"shares", shares},
          {"peak_bytes", proposal.peakBytes},
          {"peak_worker", proposal.peakWorker}};
}

std::string jsonOf(const Question &question, const Space &space,
                   const Answer &answer, std::span<const Detail> details) {
  ordered_json plans = ordered_json::array();
  for (const Detail &detail : details)
    plans.push_back(objectOf(question, detail));
  ordered_json schedules = ordered_json::array();
  for (const Tally &tally : answer.tallies)
    schedules.push_back(
        {{"schedule", tally.scheme->name},
         {"plans", tally.choices},
         {"simulated", tally.simulated},
         {"ruled_out", tally.hopeless},
         {"too_large", tally.tooLarge},
         {"impossible", tally.impossible},
         {"smallest_peak_bytes", tally.smallest
                                     ? ordered_json(tally.smallest->peakBytes)
                                     : ordered_json()}});
  ordered_json refusals = ordered_json::array();
  for (const Refusal &refusal : space.refusals)
    refusals.push_back({{"plan", refusal.what}, {"reason", refusal.reason}});
  ordered_json document = {{"batch", question.batch},
                           {"devices", question.machine.devices},
                           {"memory", question.machine.memory},
                           {"plans", plans},
                           {"schedules", schedules},
                           {"refusals", refusals}};
  return document.dump(2) + "\n";
}

} // namespace chimera::plan
