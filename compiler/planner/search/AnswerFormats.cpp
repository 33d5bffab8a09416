//===- AnswerFormats.cpp - Answers as tables ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/AnswerFormats.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/TextTable.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace chimera::plan {

using schedule::percent;
using schedule::shortBytes;
using schedule::textTable;
using Rows = std::vector<std::vector<std::string>>;

static std::string timeOf(double nanoseconds) {
  static const schedule::TimeScale kScale{schedule::findTimeUnit("ns"), 1};
  return schedule::roundedTime(nanoseconds, kScale);
}

double rateOf(const Question &question, double step) {
  int64_t each = std::max<int64_t>(question.model.tokens(), 1);
  return static_cast<double>(question.batch * each) / (step * 1e-9);
}

const char *rateName(const Question &question) {
  return question.model.tokens() > 0 ? "tokens/s" : "samples/s";
}

static std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1000 ? "%.4g" : "%.0f", value);
  return text;
}

const char *nameOf(schedule::AllReducePolicy policy) {
  for (const schedule::NamedPolicy &named : schedule::kPolicies)
    if (named.policy == policy)
      return named.name;
  return "";
}

/// The text of a cell without a value: nothing is recomputed, no gradients are
/// summed, or a part of the step takes no time.
static constexpr const char *kNothing = "-";

/// The time of a part of a step. Parts of less than half a nanosecond are
/// rounding errors.
static std::string partOf(const StepBreakdown &breakdown, StepPart part) {
  const double time = breakdown.timeOf(part);
  return std::abs(time) < 0.5 ? kNothing : timeOf(time);
}

static std::string limitOf(const StepBreakdown &breakdown) {
  const StepShare *limit = breakdown.largestAvoidableShare();
  return limit ? limit->name +
                     (" " + percent(limit->time / breakdown.proposal.stepTime))
               : "";
}

/// Removes the columns with a heading in `headings`, and those in which no plan
/// has a value.
static void removeColumns(Rows &rows, std::span<const char *const> headings) {
  for (size_t column = rows.front().size(); column-- > 0;)
    if (std::ranges::find(headings, rows.front()[column]) != headings.end() ||
        std::all_of(rows.begin() + 1, rows.end(),
                    [&](const auto &row) { return row[column] == kNothing; }))
      for (std::vector<std::string> &row : rows)
        row.erase(row.begin() + static_cast<ptrdiff_t>(column));
}

/// The schedule of a choice, with the values of its options but not their
/// names: "chimera {8, halving}".
static std::string shortScheduleOf(const Choice &choice) {
  std::string values;
  for (size_t i = 0; i < choice.options.table().size(); ++i)
    if (choice.options.isSet(i))
      values += (values.empty() ? "" : ", ") + choice.options.print(i);
  return choice.scheme->name + (values.empty() ? "" : " {" + values + "}");
}

/// The columns that make a table too wide for a terminal.
static constexpr const char *kMoreColumns[] = {"limit", "all-reduces",
                                               "all-reduce", "update"};

std::string planTable(const Question &question,
                      std::span<const StepBreakdown> breakdowns,
                      TableStyle style) {
  Rows rows = {{"", "schedule", "limit", "D", "W", "N", "B", "stages",
                "recomputed", "all-reduces", "step", rateName(question), "idle",
                "all-reduce", "update", "peak bytes"}};
  for (size_t i = 0; i < breakdowns.size(); ++i) {
    const StepBreakdown &breakdown = breakdowns[i];
    const Proposal &proposal = breakdown.proposal;
    const Choice &choice = proposal.choice;
    rows.push_back(
        {style.isNumbered ? std::to_string(i + 1) : "",
         (style.hasAllColumns ? scheduleOf(choice) : shortScheduleOf(choice)) +
             (choice.splitBackward ? " split" : "") +
             (choice.workers > 1 ? "" : " (no pipeline)"),
         limitOf(breakdown), std::to_string(choice.workers),
         std::to_string(choice.width), std::to_string(choice.microBatches),
         std::to_string(choice.microBatchSize), std::to_string(choice.stages),
         breakdown.recomputed == 0 ? kNothing
                                   : std::to_string(breakdown.recomputed),
         breakdown.hasSums ? nameOf(proposal.policy) : kNothing,
         timeOf(proposal.stepTime),
         rounded(rateOf(question, proposal.stepTime)),
         percent(breakdown.idleShare()), partOf(breakdown, StepPart::AllReduce),
         partOf(breakdown, StepPart::Update), shortBytes(proposal.peakBytes)});
  }
  if (style.hasAllColumns)
    removeColumns(rows, {});
  else
    removeColumns(rows, kMoreColumns);
  return textTable(rows, style.hasAllColumns ? 3 : 2);
}

std::string tableLegend(TableStyle style) {
  std::string text = "D workers, W copies, N micro-batches of B samples; if D "
                     "is 1, each worker has the whole model\n";
  if (style.hasAllColumns)
    text += "limit: the largest part of the step that another plan might "
            "avoid\n";
  text += "idle: the share of the step in which workers wait for each other, "
          "without all-reduces and updates\n";
  if (!style.hasAllColumns)
    text += "--all-columns also shows the names of options, what limits a "
            "plan, its all-reduces and updates\n";
  return text;
}

/// One line for each reason. The line names all choices that were refused for
/// this reason.
static std::string linesByReason(const std::string &what,
                                 const std::vector<Refusal> &refusals) {
  std::vector<Refusal> lines;
  for (const Refusal &refusal : refusals)
    if (auto same = std::ranges::find(lines, refusal.reason, &Refusal::reason);
        same != lines.end())
      same->choice += "; " + refusal.choice;
    else
      lines.push_back(refusal);
  std::string text;
  for (const Refusal &line : lines)
    text += what + ": " + line.choice + ": " + line.reason + "\n";
  return text;
}

std::string outcomeTable(const Question &question, const Space &space,
                         const Answer &answer) {
  Rows rows = {{"schedule", "plans", "simulated", "ruled out by a bound",
                "too large", "impossible"}};
  for (const OutcomeCounts &counts : answer.outcomeCounts)
    rows.push_back(
        {counts.scheme->name, std::to_string(counts.choices),
         std::to_string(counts.simulated), std::to_string(counts.ruledOut),
         std::to_string(counts.tooLarge), std::to_string(counts.impossible)});
  std::string text = textTable(rows, 1);
  std::vector<Refusal> impossible;
  for (const OutcomeCounts &counts : answer.outcomeCounts) {
    if (counts.smallest && counts.simulated + counts.ruledOut == 0)
      text += "no plan of " + std::string(counts.scheme->name) + " fits into " +
              shortBytes(question.machine.memory) +
              ": a worker needs at least " +
              shortBytes(counts.smallest->peakBytes) + ", with " +
              counts.smallestName + "\n";
    if (counts.refusal)
      impossible.push_back(*counts.refusal);
  }
  return text + linesByReason("impossible", impossible) +
         linesByReason("not considered", space.refusals);
}

std::string comparisonTable(const StepBreakdown &one,
                            const StepBreakdown &other) {
  Rows rows = {{"", "one", "other", "difference"}};
  auto row = [&](const std::string &name, double a, double b) {
    std::string difference = timeOf(std::abs(b - a));
    rows.push_back({name, timeOf(a), timeOf(b),
                    (b > a   ? "+"
                     : b < a ? "-"
                             : "") +
                        difference});
  };
  const StepShare *most = nullptr;
  double largest = 0;
  for (size_t i = 0; i < one.shares.size(); ++i) {
    double a = one.shares[i].time, b = other.shares[i].time;
    row(one.shares[i].name, a, b);
    if (std::abs(b - a) > largest) {
      largest = std::abs(b - a);
      most = &one.shares[i];
    }
  }
  row("step", one.proposal.stepTime, other.proposal.stepTime);
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

} // namespace chimera::plan
