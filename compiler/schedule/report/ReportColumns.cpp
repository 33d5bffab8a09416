//===- ReportColumns.cpp - The values of a report by name -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/ReportColumns.h"

#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>
#include <cmath>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

/// Writes whole numbers without a fraction.
ordered_json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p63)
    return static_cast<int64_t>(value);
  return value;
}

/// A time in units: an integer if it is whole, else the nearest double.
ordered_json timeInUnits(const Report &report, int64_t ticks) {
  int64_t perUnit = report.scale.perUnit;
  if (ticks % perUnit == 0)
    return ticks / perUnit;
  return report.scale.units(static_cast<double>(ticks));
}

/// A list of times in units, each as in timeInUnits.
ordered_json timesInUnits(const Report &report,
                          const std::vector<int64_t> &ticks) {
  ordered_json times = ordered_json::array();
  for (int64_t each : ticks)
    times.push_back(timeInUnits(report, each));
  return times;
}

/// A time of each stage, which `of` returns: one number if all are equal.
template <typename Of> ordered_json timeOfStages(const Report &report, Of of) {
  std::vector<int64_t> times;
  for (const StageCost &stage : report.problem.stages)
    times.push_back(of(stage));
  if (std::ranges::count(times, times.front()) == std::ssize(times))
    return timeInUnits(report, times.front());
  return timesInUnits(report, times);
}

template <int64_t StageCost::*member> ordered_json cost(const Report &report) {
  return timeOfStages(report,
                      [](const StageCost &stage) { return stage.*member; });
}

/// The time that an action of `kind` adds to the next one if both are joined.
/// Null if no stage states it (`given`).
template <std::optional<int64_t> StageCost::*given, Kind kind>
ordered_json joined(const Report &report) {
  if (std::ranges::none_of(report.problem.stages, [](const StageCost &stage) {
        return (stage.*given).has_value();
      }))
    return {};
  return timeOfStages(
      report, [](const StageCost &stage) { return stage.joinedTimeOf(kind); });
}

/// A cost of whole backwards or, if `isSplit`, of split backwards. Null if the
/// problem has no such backwards.
template <int64_t StageCost::*time, bool isSplit>
ordered_json costOf(const Report &report) {
  const Splits &splits = report.problem.splits;
  return (isSplit ? splits.any() : splits.anyWhole()) ? cost<time>(report)
                                                      : ordered_json();
}

/// How stages are recomputed: one word if it is the same for all stages,
/// otherwise one word for each stage.
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

/// The part of a message time that depends on its bytes, as text: "2 for each
/// 1048576 bytes".
ordered_json bytesTimeOf(const Report &report, const MessageTime &of) {
  if (of.beta == 0)
    return {};
  return decimalNumber(of.beta, report.scale.perUnit) + " for each " +
         std::to_string(of.betaBytes) + " bytes";
}

/// Indices in `Network::classes()`.
constexpr size_t kBetweenNodes = 0, kWithinNode = 1;

/// The link of a class, or null if there is no such class.
template <size_t linkClass> const Link *linkOf(const Report &report) {
  std::vector<const LinkClass *> classes = report.problem.classes();
  return linkClass < classes.size() ? &classes[linkClass]->link : nullptr;
}

template <size_t linkClass> ordered_json flightOf(const Report &report) {
  const Link *link = linkOf<linkClass>(report);
  return link ? timeInUnits(report, link->alpha) : ordered_json();
}

template <size_t linkClass> ordered_json flightBytesOf(const Report &report) {
  const Link *link = linkOf<linkClass>(report);
  return link ? bytesTimeOf(report, *link) : ordered_json();
}

/// The fixed time for which a message occupies one of its workers. `end`
/// selects the send or the receive. Null if it takes no time.
template <size_t linkClass, MessageTime Link::*end>
ordered_json occupationOf(const Report &report) {
  const Link *link = linkOf<linkClass>(report);
  return link && ((link->*end).alpha > 0 || (link->*end).beta > 0)
             ? timeInUnits(report, (link->*end).alpha)
             : ordered_json();
}

template <size_t linkClass, MessageTime Link::*end>
ordered_json occupationBytesOf(const Report &report) {
  const Link *link = linkOf<linkClass>(report);
  return link ? bytesTimeOf(report, link->*end) : ordered_json();
}

/// A part of the step time. Null if all-reduces and updates take no time.
template <double StepTime::*part> ordered_json partOf(const Report &report) {
  return hasSyncAndUpdate(report.problem)
             ? number(report.scale.units(report.step.*part))
             : ordered_json();
}

/// The bytes of each worker. Null if the sizes of stages are unknown.
ordered_json bytesOfWorkers(const Report &report,
                            const std::vector<int64_t> &bytes) {
  return report.problem.bytes.empty() ? ordered_json() : ordered_json(bytes);
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
      bounds[bound.name] = timeInUnits(report, bound.time);
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

constexpr ReportColumn kReportColumns[] = {
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
    {"forward", "forward (f)", cost<&StageCost::forward>, ReportForm::Time},
    {"paired_forward", "  adds to a backward in a pair",
     joined<&StageCost::pairedForward, Kind::Forward>, ReportForm::Time},
    {"backward", "backward (b)", costOf<&StageCost::backward, false>,
     ReportForm::Time},
    {"input_gradient", "input gradient",
     costOf<&StageCost::inputGradient, true>, ReportForm::Time},
    {"weight_gradient", "weight gradient",
     costOf<&StageCost::weightGradient, true>, ReportForm::Time},
    {"joined_weight_gradient", "  each but the last of joined ones",
     joined<&StageCost::joinedWeightGradient, Kind::WeightGradient>,
     ReportForm::Time},
    {"recompute", "recompute",
     [](const Report &r) {
       return r.withoutRecompute ? cost<&StageCost::recompute>(r)
                                 : ordered_json();
     },
     ReportForm::Time},
    {"p2p", "p2p", flightOf<kBetweenNodes>, ReportForm::Time},
    {"p2p_bytes", "  and for bytes", flightBytesOf<kBetweenNodes>},
    {"send", "send, occupies its worker",
     occupationOf<kBetweenNodes, &Link::send>, ReportForm::Time},
    {"send_bytes", "  and for bytes",
     occupationBytesOf<kBetweenNodes, &Link::send>},
    {"receive", "receive, occupies its worker",
     occupationOf<kBetweenNodes, &Link::receive>, ReportForm::Time},
    {"receive_bytes", "  and for bytes",
     occupationBytesOf<kBetweenNodes, &Link::receive>},
    {"node_devices", "devices of a node",
     [](const Report &r) {
       return r.problem.node ? ordered_json(r.problem.node->devices)
                             : ordered_json();
     }},
    {"node_cores", "  cores that they share",
     [](const Report &r) {
       return r.problem.node && r.problem.node->cores > 0
                  ? ordered_json(r.problem.node->cores)
                  : ordered_json();
     }},
    {"node_p2p", "  p2p within it", flightOf<kWithinNode>, ReportForm::Time},
    {"node_p2p_bytes", "    and for bytes", flightBytesOf<kWithinNode>},
    {"node_send", "  send, occupies its worker",
     occupationOf<kWithinNode, &Link::send>, ReportForm::Time},
    {"node_send_bytes", "    and for bytes",
     occupationBytesOf<kWithinNode, &Link::send>},
    {"node_receive", "  receive, occupies its worker",
     occupationOf<kWithinNode, &Link::receive>, ReportForm::Time},
    {"node_receive_bytes", "    and for bytes",
     occupationBytesOf<kWithinNode, &Link::receive>},
    {"memory_caps", "memory caps per worker",
     [](const Report &r) -> ordered_json { return r.problem.memoryCaps; },
     ReportForm::Bytes},
    {"over_memory_cap", "  REFUSED, exceeded by",
     [](const Report &r) -> ordered_json {
       return r.overCap.empty() ? ordered_json() : ordered_json(r.overCap);
     }},
    {"receive_window", "receive window",
     [](const Report &r) -> ordered_json { return r.receiveWindow; }},
    {"receive_window_bytes", "  its bytes per worker",
     [](const Report &r) { return bytesOfWorkers(r, r.receiveBytes); },
     ReportForm::Bytes},
    {"receive_window_makespans", "  makespan with it and smaller ones",
     [](const Report &r) {
       ordered_json all = ordered_json::object();
       for (auto [window, makespan] : r.windowMakespans)
         all[std::to_string(window)] = timeInUnits(r, makespan);
       return all;
     },
     ReportForm::Time},
    {"device_order_makespan", "makespan with stream-per-device",
     [](const Report &r) -> ordered_json {
       return timeInUnits(r, r.deviceOrderMakespan);
     },
     ReportForm::Time},
    {"steps", "overlapping steps, shown",
     [](const Report &r) {
       return r.steady ? ordered_json(r.problem.steps) : ordered_json();
     }},
    {"step", "step (mean of many)",
     [](const Report &r) -> ordered_json {
       return number(r.scale.units(r.step.total));
     },
     ReportForm::Time},
    {"step_actions", "  actions", partOf<&StepTime::actions>, ReportForm::Time},
    {"step_all_reduce", "  un-overlapped all-reduce",
     partOf<&StepTime::allReduce>, ReportForm::Time},
    {"step_update", "  updates", partOf<&StepTime::update>, ReportForm::Time},
    {"step_sample", "  for each sample",
     [](const Report &r) -> ordered_json {
       return number(
           r.scale.units(r.step.total / static_cast<double>(r.samples())));
     },
     ReportForm::Time},
    {"makespan", "makespan",
     [](const Report &r) -> ordered_json {
       return timeInUnits(r, r.timing.makespan);
     },
     ReportForm::Time},
    {"makespan_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.withoutRecompute ? timeInUnits(r, r.withoutRecompute->makespan)
                                 : ordered_json();
     },
     ReportForm::Time},
    {"load", "load of the busiest worker",
     [](const Report &r) -> ordered_json {
       return timeInUnits(r, r.timing.maxLoad());
     },
     ReportForm::Time},
    {"idle", "idle per worker",
     [](const Report &r) -> ordered_json {
       return timesInUnits(r, r.timing.idle);
     },
     ReportForm::Time},
    {"occupied", "  part used by messages",
     [](const Report &r) {
       return std::ranges::count(r.timing.occupied, 0) ==
                      std::ssize(r.timing.occupied)
                  ? ordered_json()
                  : timesInUnits(r, r.timing.occupied);
     },
     ReportForm::Time},
    {"flush_bubble", "bubble (makespan less load)",
     [](const Report &r) -> ordered_json {
       return timeInUnits(r, r.timing.flushBubble());
     },
     ReportForm::Time},
    {"bubble_ratio", "  ratio over all workers",
     [](const Report &r) -> ordered_json { return r.timing.bubbleRatio(); },
     ReportForm::Share},
    {"bubble_ratio_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.withoutRecompute
                  ? ordered_json(r.withoutRecompute->bubbleRatio())
                  : ordered_json();
     },
     ReportForm::Share},
    {"all_reduces", "all-reduce of the gradient, by stage",
     [](const Report &r) -> ordered_json {
       return timesInUnits(r, r.allReduces);
     },
     ReportForm::Time},
    {"all_reduce_buckets", "  in buckets",
     [](const Report &r) {
       return r.problem.bucketBytes > 0 ? ordered_json(r.buckets)
                                        : ordered_json();
     }},
    {"all_reduce_tied", "  of tied weights",
     [](const Report &r) {
       return r.tiedAllReduce ? timeInUnits(r, *r.tiedAllReduce)
                              : ordered_json();
     },
     ReportForm::Time},
    {"all_reduce_tied_buckets", "  in buckets",
     [](const Report &r) {
       return r.problem.bucketBytes > 0 && r.tiedBuckets
                  ? ordered_json(*r.tiedBuckets)
                  : ordered_json();
     }},
    {"all_reduce_unoverlapped", "  un-overlapped at the step's end",
     unoverlappedOf, ReportForm::Time},
    {"all_reduce_early_stages", "  stages that eager_opt reduces early",
     [](const Report &r) -> ordered_json { return r.earlyStages; }},
    {"step_period_without_recomputes", "a step without recomputes",
     [](const Report &r) {
       return r.steadyWithoutRecompute
                  ? number(r.scale.units(r.steadyWithoutRecompute->period))
                  : ordered_json();
     },
     ReportForm::Time},
    {"step_bubble_ratio", "steady state: bubble of a step",
     [](const Report &r) {
       return r.steady ? ordered_json(r.steady->bubbleRatio) : ordered_json();
     },
     ReportForm::Share},
    {"bubble_ratio_formula", "  ratio, by formula",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleValue) : ordered_json();
     },
     ReportForm::Share},
    {"bubble_formula", "  formula",
     [](const Report &r) -> ordered_json {
       return r.bubbleFormula ? ordered_json(r.bubbleFormula->formula)
                              : ordered_json();
     }},
    {"bubble_formula_conditions", "  conditions",
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
       return timeInUnits(r, r.timing.internalBubble());
     },
     ReportForm::Time},
    {"internal_bubble_ratio", "  ratio, simulated",
     [](const Report &r) -> ordered_json { return r.internalBubbleRatio(); },
     ReportForm::Share},
    {"peak_activations", "peak activations per worker",
     [](const Report &r) -> ordered_json { return r.timing.peakActivations; }},
    {"activation_cap", "  cap",
     [](const Report &r) {
       return r.activationCap ? ordered_json(*r.activationCap) : ordered_json();
     }},
    {"over_activation_cap", "  cap exceeded by workers",
     [](const Report &r) {
       const std::vector<int32_t> over = r.overActivationCap();
       return over.empty() ? ordered_json() : ordered_json(over);
     }},
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
       return r.withoutRecompute
                  ? ordered_json(r.withoutRecompute->peakActivations)
                  : ordered_json();
     }},
    {"weight_versions", "versions of weights, by stage", versionsOf},
    {"resident_bytes", "resident bytes per worker",
     [](const Report &r) { return bytesOfWorkers(r, r.residentBytes); },
     ReportForm::Bytes},
    {"peak_bytes", "peak bytes per worker",
     [](const Report &r) { return bytesOfWorkers(r, r.timing.peakBytes); },
     ReportForm::Bytes},
    {"peak_bytes_without_recomputes", "  without recomputes",
     [](const Report &r) {
       return r.withoutRecompute
                  ? bytesOfWorkers(r, r.withoutRecompute->peakBytes)
                  : ordered_json();
     },
     ReportForm::Bytes},
    {"allocated_bytes", "allocated bytes per worker",
     [](const Report &r) {
       return r.allocatedBytes.empty() ? ordered_json()
                                       : ordered_json(r.allocatedBytes);
     },
     ReportForm::Bytes},
    {"bounds", "lower bounds of the makespan", boundsOf, ReportForm::Time},
    {"highest_bound", "  the highest",
     [](const Report &r) -> ordered_json {
       const Bound &bound = bestBound(r.bounds);
       return std::string(bound.name) + ": " + bound.formula + " (" +
              bound.conditions + "; " + bound.reason + ")";
     }},
    {"gap", "gap to the highest",
     [](const Report &r) -> ordered_json {
       return gapTo(r.timing, bestBound(r.bounds));
     },
     ReportForm::Share},
    {"notes", "note", [](const Report &r) -> ordered_json { return r.notes; }},
};

} // namespace

std::span<const ReportColumn> reportColumns() { return kReportColumns; }

} // namespace chimera::schedule
