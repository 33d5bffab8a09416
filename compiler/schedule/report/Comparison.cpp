//===- Comparison.cpp - Reports side by side ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/Report.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/TextTable.h"

#include <algorithm>
#include <cstdio>

namespace chimera::schedule {

namespace {

std::string roundedTimeOf(const Report &report, double ticks) {
  return roundedTime(ticks, report.scale);
}

double timeOfSample(const Report &report) {
  return report.step.total / static_cast<double>(report.samples());
}

/// The sort key of a report: its table, then the time per sample. Reports whose
/// units are durations are in one table, and are compared in microseconds.
/// Reports with another unit are compared only with reports with the same unit.
std::pair<const TimeUnit *, double> rankOf(const Report &report) {
  const TimeUnit *unit = report.scale.unit;
  double time = report.scale.units(timeOfSample(report));
  if (unit->isDuration)
    return {nullptr, time * unit->microseconds};
  return {unit, time};
}

std::string peakBytesOf(const Report &report) {
  if (report.problem.bytes.empty())
    return "";
  const std::vector<int64_t> &bytes = report.allocatedBytes.empty()
                                          ? report.timing.peakBytes
                                          : report.allocatedBytes;
  return shortBytes(std::ranges::max(bytes)) +
         (report.overCap.empty() ? "" : " (over its cap)");
}

struct ComparisonColumn {
  const char *head;
  std::string (*cell)(const Report &report);
};

constexpr ComparisonColumn kComparisonColumns[] = {
    {"pipeline", [](const Report &r) { return r.name; }},
    {"schedule", [](const Report &r) { return r.schedule; }},
    {"D", [](const Report &r) { return std::to_string(r.problem.workers); }},
    {"W", [](const Report &r) { return std::to_string(r.problem.width); }},
    {"N",
     [](const Report &r) { return std::to_string(r.problem.microBatches()); }},
    {"B", [](const Report &r) { return std::to_string(r.microBatchSize); }},
    {"sample",
     [](const Report &r) { return roundedTimeOf(r, timeOfSample(r)); }},
    {"step", [](const Report &r) { return roundedTimeOf(r, r.step.total); }},
    {"actions",
     [](const Report &r) { return roundedTimeOf(r, r.step.actions); }},
    {"all-reduce",
     [](const Report &r) { return roundedTimeOf(r, r.step.allReduce); }},
    {"updates",
     [](const Report &r) { return roundedTimeOf(r, r.step.update); }},
    {"idle", [](const Report &r) { return percent(1 - r.busyShare()); }},
    {"activations",
     [](const Report &r) {
       return std::to_string(std::ranges::max(r.timing.peakActivations)) +
              (r.overActivationCap().empty() ? "" : " (over its cap)");
     }},
    {"peak bytes", peakBytesOf},
};

std::string table(std::span<const Report *const> reports) {
  std::vector<std::vector<std::string>> rows(reports.size() + 1);
  for (const ComparisonColumn &column : kComparisonColumns) {
    rows.front().push_back(column.head);
    for (size_t i = 0; i < reports.size(); ++i)
      rows[i + 1].push_back(column.cell(*reports[i]));
  }
  return textTable(rows, 2);
}

} // namespace

std::string renderComparison(std::span<const Report> reports) {
  std::vector<const Report *> sorted;
  for (const Report &report : reports)
    sorted.push_back(&report);
  std::ranges::stable_sort(
      sorted, {}, [](const Report *report) { return rankOf(*report); });
  std::string text;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    auto end = std::find_if(begin, sorted.end(), [&](const Report *report) {
      return rankOf(*report).first != rankOf(**begin).first;
    });
    text += (text.empty() ? "" : "\n") + table({begin, end});
    begin = end;
  }
  return text +
         "D workers, W copies, N micro-batches of B samples\n"
         "sample: the step divided by the samples of all copies\n"
         "actions: the step without gradient sums and updates, but with the "
         "waits of workers for each other\n"
         "idle: share of the step in which a worker runs no action, mean over "
         "workers\n";
}

} // namespace chimera::schedule
