//===- ReportFormats.cpp - Reports as table, CSV and JSON -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Report.h"

#include "compiler/schedule/Comparison.h"
#include "compiler/schedule/Magnitude.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

/// How the table writes a number, for people; CSV and JSON have it as it is.
enum class Form : uint8_t { Plain, Share, Time, Bytes };

/// A column of all forms. Null where a report has no value for it.
struct Column {
  const char *name; ///< in CSV and JSON
  const char *text; ///< in the table; null for its heading
  ordered_json (*value)(const Report &report);
  Form form = Form::Plain;
};

/// Whole numbers without a fraction, as others are.
ordered_json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p63)
    return static_cast<int64_t>(value);
  return value;
}

/// A time in units: exact where it is whole, else the nearest double.
ordered_json timeOf(const Report &report, int64_t ticks) {
  int64_t perUnit = report.scale.perUnit;
  if (ticks % perUnit == 0)
    return ticks / perUnit;
  return report.scale.units(static_cast<double>(ticks));
}

/// The same of each.
ordered_json timesOf(const Report &report, const std::vector<int64_t> &ticks) {
  ordered_json times = ordered_json::array();
  for (int64_t each : ticks)
    times.push_back(timeOf(report, each));
  return times;
}

template <int64_t StageCost::*member> ordered_json cost(const Report &report) {
  std::vector<int64_t> times;
  for (const StageCost &stage : report.problem.stages)
    times.push_back(stage.*member);
  if (std::ranges::count(times, times.front()) == std::ssize(times))
    return timeOf(report, times.front());
  return timesOf(report, times);
}

/// A time of whole backwards, or of split ones: null where there is none.
template <int64_t StageCost::*time, bool isSplit>
ordered_json costOf(const Report &report) {
  const Splits &splits = report.problem.splits;
  return (isSplit ? splits.any() : splits.anyWhole()) ? cost<time>(report)
                                                      : ordered_json();
}

/// A word for all stages, or one for each.
ordered_json recomputationOf(const Report &report) {
  static constexpr const char *kWords[] = {"none", "early", "fused"};
  std::vector<std::string> words;
  for (Recompute how : report.problem.recompute)
    words.push_back(kWords[static_cast<size_t>(how)]);
  if (words.empty())
    return {};
  if (std::ranges::count(words, words.front()) == std::ssize(words))
    return words.front();
  return words;
}

/// The time that messages take for their bytes: "2 for each 1048576 bytes".
ordered_json bytesTimeOf(const Report &report, const MessageTime &of) {
  if (of.beta == 0)
    return {};
  return exactNumber(of.beta, report.scale.perUnit) + " for each " +
         std::to_string(of.betaBytes) + " bytes";
}

/// Null where a message occupies no worker.
ordered_json occupationOf(const Report &report, const MessageTime &of) {
  return of.alpha > 0 || of.beta > 0 ? timeOf(report, of.alpha)
                                     : ordered_json();
}

/// A part of a step, where it has more than actions.
template <double StepTime::*part> ordered_json partOf(const Report &report) {
  return hasTail(report.problem) ? number(report.scale.units(report.step.*part))
                                 : ordered_json();
}

ordered_json versionsOf(const Report &report) {
  if (!report.steady)
    return {};
  std::vector<int32_t> versions;
  for (size_t s = 0; s < report.problem.stages.size(); ++s)
    versions.push_back(weightVersions(report.problem, static_cast<int32_t>(s)));
  return versions;
}

ordered_json schemeOptionsOf(const Report &report) {
  ordered_json options = ordered_json::object();
  std::span<const Option> table = report.options.table();
  for (size_t i = 0; i < table.size(); ++i)
    options[std::string(table[i].name)] = report.options.print(i);
  return options;
}

ordered_json boundsOf(const Report &report) {
  ordered_json bounds = ordered_json::object();
  for (const Bound &bound : report.bounds)
    if (bound.time > 0)
      bounds[bound.name] = timeOf(report, bound.time);
  return bounds;
}

ordered_json unoverlappedOf(const Report &report) {
  ordered_json result = ordered_json::object();
  for (size_t i = 0; i < report.unoverlapped.size(); ++i)
    result[kPolicies[i].name] =
        number(report.scale.units(report.unoverlapped[i]));
  return result;
}

ordered_json interval(const std::vector<int32_t> &values) {
  auto [least, most] = std::ranges::minmax(values);
  return {least, most};
}

/// Sizes, times, results; a table, a CSV row and a JSON object walk it.
constexpr Column kColumns[] = {
    {"name", "pipeline",
     [](const Report &r) -> ordered_json { return r.name; }},
    {"title", nullptr, [](const Report &r) -> ordered_json { return r.title; }},
    {"schedule", "schedule",
     [](const Report &r) -> ordered_json { return r.schedule; }},
    {"options", "options", schemeOptionsOf},
    {"workers", "workers (D)",
     [](const Report &r) -> ordered_json { return r.problem.workers; }},
    {"stages", "stages (S)",
     [](const Report &r) -> ordered_json { return r.problem.stages.size(); }},
    {"micro_batches", "micro-batches (N)",
     [](const Report &r) -> ordered_json { return r.problem.microBatches(); }},
    {"width", "data-parallel width (W)",
     [](const Report &r) -> ordered_json { return r.problem.width; }},
    {"micro_batch_size", "micro-batch size (B)",
     [](const Report &r) -> ordered_json { return r.microBatchSize; }},
    {"pipelines", "pipelines (p)",
     [](const Report &r) -> ordered_json {
       return r.problem.pipelines.size();
     }},
    {"recomputation", "recomputation", recomputationOf},
    {"time_unit", "unit of time",
     [](const Report &r) -> ordered_json { return r.scale.unit->name; }},
    {"forward", "forward (f)", cost<&StageCost::forward>, Form::Time},
    {"backward", "backward (b)", costOf<&StageCost::backward, false>,
     Form::Time},
    {"input_gradient", "input gradient",
     costOf<&StageCost::inputGradient, true>, Form::Time},
    {"weight_gradient", "weight gradient",
     costOf<&StageCost::weightGradient, true>, Form::Time},
    {"recompute", "recompute",
     [](const Report &r) {
       return r.kept ? cost<&StageCost::recompute>(r) : ordered_json();
     },
     Form::Time},
    {"p2p", "p2p",
     [](const Report &r) -> ordered_json {
       return timeOf(r, r.problem.link.alpha);
     },
     Form::Time},
    {"p2p_bytes", "  and for bytes",
     [](const Report &r) { return bytesTimeOf(r, r.problem.link); }},
    {"send", "send, occupies its worker",
     [](const Report &r) { return occupationOf(r, r.problem.link.send); },
     Form::Time},
    {"send_bytes", "  and for bytes",
     [](const Report &r) { return bytesTimeOf(r, r.problem.link.send); }},
    {"receive", "receive, occupies its worker",
     [](const Report &r) { return occupationOf(r, r.problem.link.receive); },
     Form::Time},
    {"receive_bytes", "  and for bytes",
     [](const Report &r) { return bytesTimeOf(r, r.problem.link.receive); }},
    {"memory_caps", "memory caps per worker",
     [](const Report &r) -> ordered_json { return r.problem.memoryCaps; },
     Form::Bytes},
    {"over_memory_cap", "  REFUSED, they are exceeded by",
     [](const Report &r) -> ordered_json {
       return r.overCap.empty() ? ordered_json() : ordered_json(r.overCap);
     }},
    {"receive_window", "receive window",
     [](const Report &r) -> ordered_json { return r.receiveWindow; }},
    {"receive_window_bytes", "  its bytes per worker",
     [](const Report &r) -> ordered_json { return r.receiveBytes; },
     Form::Bytes},
    {"receive_window_makespans", "  makespan with it and smaller ones",
     [](const Report &r) {
       ordered_json all = ordered_json::object();
       for (auto [window, makespan] : r.windowMakespans)
         all[std::to_string(window)] = timeOf(r, makespan);
       return all;
     },
     Form::Time},
    {"device_order_makespan", "makespan with one order a device",
     [](const Report &r) -> ordered_json {
       return timeOf(r, r.deviceOrderMakespan);
     },
     Form::Time},
    {"steps", "steps that overlap, shown",
     [](const Report &r) {
       return r.steady ? ordered_json(r.problem.steps) : ordered_json();
     }},
    {"step", "step (mean of many)",
     [](const Report &r) -> ordered_json {
       return number(r.scale.units(r.step.total));
     },
     Form::Time},
    {"step_actions", "  actions", partOf<&StepTime::actions>, Form::Time},
    {"step_all_reduce", "  un-overlapped all-reduce",
     partOf<&StepTime::allReduce>, Form::Time},
    {"step_update", "  updates", partOf<&StepTime::update>, Form::Time},
    {"step_sample", "  for each sample",
     [](const Report &r) -> ordered_json {
       return number(
           r.scale.units(r.step.total / static_cast<double>(r.samples())));
     },
     Form::Time},
    {"makespan", "makespan",
     [](const Report &r) -> ordered_json {
       return timeOf(r, r.timing.makespan);
     },
     Form::Time},
    {"makespan_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.kept ? timeOf(r, r.kept->makespan) : ordered_json();
     },
     Form::Time},
    {"load", "load of the busiest worker",
     [](const Report &r) -> ordered_json { return timeOf(r, r.timing.load()); },
     Form::Time},
    {"idle", "idle per worker",
     [](const Report &r) -> ordered_json { return timesOf(r, r.timing.idle); },
     Form::Time},
    {"occupied", "  of it, occupied by messages",
     [](const Report &r) {
       return std::ranges::count(r.timing.occupied, 0) ==
                      std::ssize(r.timing.occupied)
                  ? ordered_json()
                  : timesOf(r, r.timing.occupied);
     },
     Form::Time},
    {"flush_bubble", "bubble (makespan less load)",
     [](const Report &r) -> ordered_json {
       return timeOf(r, r.timing.flushBubble());
     },
     Form::Time},
    {"bubble_ratio", "  ratio over all workers",
     [](const Report &r) -> ordered_json { return r.timing.bubbleRatio(); },
     Form::Share},
    {"bubble_ratio_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.kept ? ordered_json(r.kept->bubbleRatio()) : ordered_json();
     },
     Form::Share},
    {"all_reduces", "all-reduce of the gradient, by stage",
     [](const Report &r) -> ordered_json { return timesOf(r, r.allReduces); },
     Form::Time},
    {"all_reduce_buckets", "  in buckets",
     [](const Report &r) {
       return r.problem.bucketBytes > 0 ? ordered_json(r.buckets)
                                        : ordered_json();
     }},
    {"all_reduce_tied", "  of what first and last stage share, apart",
     [](const Report &r) {
       return r.tiedAllReduce ? timeOf(r, *r.tiedAllReduce) : ordered_json();
     },
     Form::Time},
    {"all_reduce_tied_buckets", "  in buckets",
     [](const Report &r) {
       return r.problem.bucketBytes > 0 && r.tiedBuckets
                  ? ordered_json(*r.tiedBuckets)
                  : ordered_json();
     }},
    {"all_reduce_unoverlapped", "  un-overlapped at the step's end",
     unoverlappedOf, Form::Time},
    {"all_reduce_early_stages", "  early by eager_opt, stages",
     [](const Report &r) -> ordered_json { return r.earlyStages; }},
    {"step_period_without_recomputes", "a step without recomputes",
     [](const Report &r) {
       return r.keptSteady ? number(r.scale.units(r.keptSteady->period))
                           : ordered_json();
     },
     Form::Time},
    {"step_bubble_ratio", "steady state: bubble of a step",
     [](const Report &r) {
       return r.steady ? ordered_json(r.steady->bubbleRatio) : ordered_json();
     },
     Form::Share},
    {"bubble_ratio_formula", "  ratio, by formula",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleValue) : ordered_json();
     },
     Form::Share},
    {"bubble_formula", "  formula",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleFormula->formula)
                              : ordered_json();
     }},
    {"bubble_formula_conditions", "  where",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleFormula->conditions)
                              : ordered_json();
     }},
    {"bubble_formula_source", "  source",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleFormula->source)
                              : ordered_json();
     }},
    {"internal_bubble", "bubble inside a worker's span",
     [](const Report &r) -> ordered_json {
       return timeOf(r, r.timing.internalBubble());
     },
     Form::Time},
    {"internal_bubble_ratio", "  ratio, simulated",
     [](const Report &r) -> ordered_json { return r.internalBubbleRatio(); },
     Form::Share},
    {"peak_activations", "peak activations per worker",
     [](const Report &r) -> ordered_json { return r.timing.peakActivations; }},
    {"peak_activations_interval", "  interval, simulated",
     [](const Report &r) { return interval(r.timing.peakActivations); }},
    {"peak_activations_formula_interval", "  interval, by formula",
     [](const Report &r) -> ordered_json {
       return r.peakFormula
                  ? ordered_json{r.peakValue.first, r.peakValue.second}
                  : ordered_json();
     }},
    {"peak_activations_formula", "  formula",
     [](const Report &r) -> ordered_json {
       return r.peakFormula ? ordered_json(std::string(r.peakFormula->formula) +
                                           " (" + r.peakFormula->conditions +
                                           "; " + r.peakFormula->source + ")")
                            : ordered_json();
     }},
    {"peak_activations_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.kept ? ordered_json(r.kept->peakActivations) : ordered_json();
     }},
    {"weight_versions", "versions of weights, by stage", versionsOf},
    {"resident_bytes", "resident bytes per worker",
     [](const Report &r) -> ordered_json { return r.residentBytes; },
     Form::Bytes},
    {"peak_bytes", "peak bytes per worker",
     [](const Report &r) -> ordered_json { return r.timing.peakBytes; },
     Form::Bytes},
    {"peak_bytes_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.kept ? ordered_json(r.kept->peakBytes) : ordered_json();
     },
     Form::Bytes},
    {"allocated_bytes", "allocated bytes per worker",
     [](const Report &r) {
       return r.allocatedBytes.empty() ? ordered_json()
                                       : ordered_json(r.allocatedBytes);
     },
     Form::Bytes},
    {"bounds", "lower bounds of the makespan", boundsOf, Form::Time},
    {"highest_bound", "  the highest",
     [](const Report &r) -> ordered_json {
       const Bound &bound = best(r.bounds);
       return std::string(bound.name) + ": " + bound.formula + " (" +
              bound.conditions + "; " + bound.reason + ")";
     }},
    {"gap", "gap to the highest",
     [](const Report &r) -> ordered_json {
       return gap(r.timing, best(r.bounds));
     },
     Form::Share},
    {"notes", "note", [](const Report &r) -> ordered_json { return r.notes; }},
};

/// A number as people read it.
std::string forPeople(const ordered_json &value, Form form,
                      const TimeScale &scale) {
  if (form == Form::Share && value.is_number_float())
    return percent(value.get<double>());
  if (form == Form::Time && scale.unit->isDuration)
    return shortTime(value.get<double>() * static_cast<double>(scale.perUnit),
                     scale);
  if (form == Form::Bytes)
    return shortBytes(value.get<int64_t>());
  return value.dump();
}

/// A value on one line: lists with blanks, pairs as "name = value".
std::string flat(const ordered_json &value, Form form = Form::Plain,
                 const TimeScale &scale = {}) {
  std::string text;
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number())
    return forPeople(value, form, scale);
  if (value.is_object()) {
    for (const auto &[key, item] : value.items())
      text +=
          (text.empty() ? "" : ", ") + key + " = " + flat(item, form, scale);
    return text;
  }
  if (!value.is_array())
    return value.dump();
  std::vector<std::string> items;
  for (const ordered_json &item : value)
    items.push_back(flat(item, form, scale));
  // Some numbers have units behind a blank.
  bool isSpaced = std::ranges::any_of(items, [](const std::string &item) {
    return item.find(' ') < item.size();
  });
  const char *between = !value.empty() && value[0].is_string() ? "; "
                        : isSpaced                             ? ", "
                                                               : " ";
  for (const std::string &item : items)
    text += (&item == items.data() ? "" : between) + item;
  return text;
}

bool isEmpty(const ordered_json &value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

std::string renderTable(std::span<const Report> reports) {
  size_t width = 0;
  for (const Column &column : kColumns)
    if (column.text)
      width = std::max(width, std::string_view(column.text).size());
  std::string text;
  for (const Report &report : reports) {
    if (!text.empty())
      text += "\n";
    text += report.title.empty() ? "" : report.title + "\n";
    for (const Column &column : kColumns) {
      if (!column.text)
        continue;
      ordered_json value = column.value(report);
      if (isEmpty(value))
        continue;
      std::string name = column.text;
      name.resize(width + 2, ' ');
      text += name + flat(value, column.form, report.scale) + "\n";
    }
  }
  return text;
}

/// RFC 4180: in quotes where it holds a quote, a comma or a line's end.
std::string quoted(const std::string &field) {
  if (field.find_first_of("\",\r\n") == std::string::npos)
    return field;
  std::string text = "\"";
  for (char c : field)
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string renderCsv(std::span<const Report> reports) {
  std::string text;
  for (const Column &column : kColumns)
    text += (text.empty() ? "" : ",") + std::string(column.name);
  text += "\n";
  for (const Report &report : reports) {
    std::string row;
    for (const Column &column : kColumns) {
      ordered_json value = column.value(report);
      row += (&column == kColumns ? "" : ",") +
             (isEmpty(value) ? "" : quoted(flat(value)));
    }
    text += row + "\n";
  }
  return text;
}

std::string renderJson(std::span<const Report> reports) {
  ordered_json document = ordered_json::array();
  for (const Report &report : reports) {
    ordered_json object;
    for (const Column &column : kColumns)
      object[column.name] = column.value(report);
    document.push_back(std::move(object));
  }
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace

std::span<const ReportFormat> reportFormats() {
  static constexpr std::array<ReportFormat, 4> all = {{
      {"table", "lines for people", renderTable},
      {"comparison", "a line for each pipeline, the fastest first",
       renderComparison},
      {"csv", "a row for each pipeline", renderCsv},
      {"json", "an object for each pipeline", renderJson},
  }};
  return all;
}

} // namespace chimera::schedule
