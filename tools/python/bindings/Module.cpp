//===- Module.cpp - The schedule library for Python -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The private module chimera._schedule. The classes of the package chimera call
// it, check the types of arguments, and convert times to ticks and back.
//
//===----------------------------------------------------------------------===//

#include "tools/python/bindings/TimedSchedule.h"

#include "compiler/schedule/formats/TorchWriter.h"
#include "compiler/schedule/report/Report.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Svg.h"
#include "compiler/schedule/timeline/TimelineFormats.h"
#include "compiler/schedule/verify/Verify.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;
using namespace chimera;
using namespace chimera::python;
using schedule::StageBytes;
using schedule::StageCost;
using schedule::StatedTimes;

using WithoutGil = nb::call_guard<nb::gil_scoped_release>;

namespace {
schedule::Report reportOf(const TimedSchedule &of,
                          std::optional<int32_t> activationCap) {
  of.requireValid();
  schedule::Report report = schedule::makeReport(
      of.name, of.scheme, of.options, of.problem, of.order, of.scale);
  report.schedule = of.name;
  report.title = of.title();
  report.activationCap = activationCap;
  return report;
}

std::string renderReports(const std::vector<const TimedSchedule *> &all,
                          const std::string &format,
                          std::optional<int32_t> activationCap) {
  std::vector<schedule::Report> reports;
  for (const TimedSchedule *of : all)
    reports.push_back(reportOf(*of, activationCap));
  for (const schedule::ReportFormat &form : schedule::reportFormats())
    if (form.name == format)
      return form.render(reports);
  throw std::invalid_argument("expected a format of reports, got '" + format +
                              "'");
}

/// The results to which a Timeline refers.
struct Drawn {
  schedule::Timing timing;
  schedule::Occupations occupations;
  schedule::SyncAndUpdate syncAndUpdate;

  explicit Drawn(const TimedSchedule &of)
      : timing(schedule::simulate(of.problem, of.order)),
        occupations(
            schedule::messageOccupationsOf(of.problem, of.order, timing)) {}
};

std::string renderTimelines(const std::vector<const TimedSchedule *> &all,
                            const std::string &format, size_t lineWidth,
                            const schedule::Picture &picture) {
  std::vector<Drawn> drawn;
  drawn.reserve(all.size());
  std::vector<schedule::Timeline> timelines;
  for (const TimedSchedule *of : all) {
    of->requireValid();
    Drawn &own = drawn.emplace_back(*of);
    schedule::Timeline &line = timelines.emplace_back(schedule::Timeline{
        of->name, of->title(), of->problem, of->order, own.timing});
    line.scale = of->scale;
    line.lineWidth = lineWidth;
    line.picture = picture;
    line.occupations = &own.occupations;
    if (!schedule::hasSyncAndUpdate(of->problem))
      continue;
    line.step = schedule::stepTime(of->problem, of->order);
    own.syncAndUpdate =
        schedule::syncAndUpdateOf(of->problem, of->order, own.timing);
    line.syncAndUpdate = &own.syncAndUpdate;
  }
  if (std::string error = schedule::pictureError(timelines); !error.empty())
    throw std::invalid_argument(error);
  for (const schedule::TimelineFormat &form : schedule::timelineFormats())
    if (form.name == format)
      return form.render(timelines);
  throw std::invalid_argument("expected a format of timelines, got '" + format +
                              "'");
}

std::string torchCsvOf(const TimedSchedule &of) {
  of.requireValid();
  std::string error;
  std::optional<std::string> text =
      schedule::torch::write(of.problem, of.order, error);
  if (!text)
    throw std::invalid_argument(error);
  return *text;
}

/// The violations as tuples: constraint, message, worker, index, notes.
nb::list violationsOf(const TimedSchedule &of) {
  nb::list all;
  for (const schedule::Violation &violation : of.violations) {
    nb::list notes;
    for (const schedule::Violation::Note &note : violation.notes)
      notes.append(nb::make_tuple(note.message, note.worker, note.index));
    all.append(nb::make_tuple(schedule::nameOf(violation.constraint),
                              violation.message, violation.worker,
                              violation.index, notes));
  }
  return all;
}

/// The names, summaries, sizes and options of all schemes.
nb::list schemesAsTuples() {
  nb::list all;
  for (const schedule::Scheme &scheme : schedule::schemes()) {
    nb::dict options;
    for (const schedule::Option &option : scheme.options)
      options[nb::str(option.name.data(), option.name.size())] =
          std::string(option.values) + ": " + std::string(option.summary);
    all.append(nb::make_tuple(scheme.name, scheme.summary, scheme.needs,
                              options, scheme.stagesPerWorker));
  }
  return all;
}

void stateMessage(StatedTimes &times, const std::string &name, int64_t ticks) {
  const schedule::MessageOption *option = schedule::findMessageOption(name);
  if (!option)
    throw std::invalid_argument("expected a time of a link, got '" + name +
                                "'");
  times.messages.emplace_back(option, ticks);
}

/// The names and times of the bounds that hold.
std::vector<std::pair<std::string, int64_t>> boundsOf(const TimedSchedule &of) {
  std::vector<std::pair<std::string, int64_t>> all;
  for (const schedule::Bound &bound : schedule::bounds(of.problem))
    if (bound.time > 0)
      all.emplace_back(bound.name, bound.time);
  return all;
}

std::vector<std::pair<int32_t, int32_t>>
criticalPathOf(const schedule::Timing &timing) {
  std::vector<std::pair<int32_t, int32_t>> all;
  for (const schedule::ActionRef &action : timing.criticalPath)
    all.emplace_back(action.worker, action.index);
  return all;
}
} // namespace

NB_MODULE(_schedule, module) {
  module.doc() = "The schedule library of chimera, in C++.";

  nb::class_<StatedTimes> times(module, "Times");
  nb::enum_<StatedTimes::Scope>(times, "Scope")
      .value("STAGE", StatedTimes::Scope::Stage)
      .value("WORKER", StatedTimes::Scope::Worker)
      .value("OWN_COSTS", StatedTimes::Scope::OwnCosts);
  times.def(nb::init<>())
      .def_rw("scope", &StatedTimes::scope)
      .def_rw("per_unit", &StatedTimes::perUnit)
      .def_rw("forward", &StatedTimes::forward)
      .def_rw("backward", &StatedTimes::backward)
      .def_rw("weight_gradient", &StatedTimes::weightGradient)
      .def_rw("update", &StatedTimes::update)
      .def("state_message", stateMessage, "name"_a, "ticks"_a);

  nb::class_<StageCost>(module, "StageCost")
      .def(nb::init<>())
      .def_rw("forward", &StageCost::forward)
      .def_rw("backward", &StageCost::backward)
      .def_rw("input_gradient", &StageCost::inputGradient)
      .def_rw("weight_gradient", &StageCost::weightGradient)
      .def_rw("recompute", &StageCost::recompute)
      .def_rw("update", &StageCost::update)
      .def_rw("paired_forward", &StageCost::pairedForward)
      .def_rw("joined_weight_gradient", &StageCost::joinedWeightGradient);

  nb::class_<StageBytes>(module, "StageBytes")
      .def(nb::init<>())
      .def_rw("weights", &StageBytes::weights)
      .def_rw("optimizer", &StageBytes::optimizer)
      .def_rw("stash", &StageBytes::stash)
      .def_rw("weight_stash", &StageBytes::weightStash)
      .def_rw("boundary", &StageBytes::boundary);

  nb::class_<Statement>(module, "Statement")
      .def(nb::init<>())
      .def_rw("costs", &Statement::costs)
      .def_rw("times", &Statement::times)
      .def_rw("unit", &Statement::unit)
      .def_rw("bytes", &Statement::bytes)
      .def_rw("copies", &Statement::copies)
      .def_rw("all_reduce", &Statement::allReduce)
      .def_rw("bucket_bytes", &Statement::bucketBytes)
      .def_rw("memory_cap", &Statement::memoryCap);

  nb::class_<Sizes>(module, "Sizes")
      .def(nb::init<>())
      .def_rw("stages", &Sizes::stages)
      .def_rw("workers", &Sizes::workers)
      .def_rw("micro_batches", &Sizes::microBatches)
      .def_rw("split_backward", &Sizes::splitBackward)
      .def_rw("recompute", &Sizes::recompute)
      .def_rw("is_fused", &Sizes::isFused);

  using schedule::Timing;
  nb::class_<Timing>(module, "Timing")
      .def_ro("makespan", &Timing::makespan)
      .def_ro("starts", &Timing::starts)
      .def_ro("ends", &Timing::ends)
      .def_ro("busy", &Timing::busy)
      .def_ro("idle", &Timing::idle)
      .def_ro("peak_activations", &Timing::peakActivations)
      .def_ro("peak_bytes", &Timing::peakBytes)
      .def_prop_ro("flush_bubble", &Timing::flushBubble)
      .def_prop_ro("internal_bubble", &Timing::internalBubble)
      .def_prop_ro("max_load", &Timing::maxLoad)
      .def_prop_ro("bubble_ratio", &Timing::bubbleRatio)
      .def_prop_ro("critical_path", criticalPathOf);

  nb::class_<schedule::Picture>(module, "Picture")
      .def(nb::init<>())
      .def_rw("cell_width", &schedule::Picture::cellWidth)
      .def_rw("begin", &schedule::Picture::from)
      .def_rw("end", &schedule::Picture::to)
      .def_rw("has_title", &schedule::Picture::hasTitle);

  nb::class_<TimedSchedule>(module, "TimedSchedule")
      .def(nb::init<const std::string &,
                    const std::map<std::string, std::string> &, const Sizes &,
                    const Statement &>(),
           "name"_a, "options"_a, "sizes"_a, "statement"_a, WithoutGil())
      .def_static("from_orders", &TimedSchedule::fromOrders, "path"_a, "text"_a,
                  "has_zero_bubble_notation"_a, "statement"_a, WithoutGil())
      .def_static("from_torch_csv", &TimedSchedule::fromTorchCsv, "path"_a,
                  "text"_a, "statement"_a, WithoutGil())
      .def_ro("name", &TimedSchedule::name)
      .def_ro("note", &TimedSchedule::note)
      .def_prop_ro("title", &TimedSchedule::title)
      .def_prop_ro(
          "stages",
          [](const TimedSchedule &of) { return of.problem.stages.size(); })
      .def_prop_ro("workers",
                   [](const TimedSchedule &of) { return of.problem.workers; })
      .def_prop_ro(
          "micro_batches",
          [](const TimedSchedule &of) { return of.problem.microBatches(); })
      .def_prop_ro("per_unit",
                   [](const TimedSchedule &of) { return of.scale.perUnit; })
      .def_prop_ro("unit",
                   [](const TimedSchedule &of) {
                     return std::string(of.scale.unit->name);
                   })
      .def_prop_ro("orders", &TimedSchedule::orders)
      .def_prop_ro("violations", violationsOf)
      .def("place_of", &TimedSchedule::placeOf, "worker"_a, "index"_a)
      .def("module", &TimedSchedule::module, "of"_a, "more"_a)
      .def("torch_csv", torchCsvOf)
      .def(
          "simulate",
          [](const TimedSchedule &of) {
            of.requireValid();
            return schedule::simulate(of.problem, of.order);
          },
          WithoutGil())
      .def(
          "step_time",
          [](const TimedSchedule &of) {
            of.requireValid();
            return schedule::stepTime(of.problem, of.order).total;
          },
          WithoutGil())
      .def("bounds", boundsOf, WithoutGil());

  module.def("schemes", schemesAsTuples);
  module.def("render_reports", renderReports, "schedules"_a, "format"_a,
             "activation_cap"_a = nb::none(), WithoutGil());
  module.def("render_timelines", renderTimelines, "schedules"_a, "format"_a,
             "line_width"_a, "picture"_a, WithoutGil());
}
