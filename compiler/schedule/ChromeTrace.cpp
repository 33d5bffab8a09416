//===- ChromeTrace.cpp - A schedule as a trace ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/ChromeTrace.h"

#include <nlohmann/json.hpp>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

/// An event a line; the document as one JSON value would take many times its
/// text in memory.
class Events {
public:
  void add(const ordered_json &event) {
    text += (text.empty() ? "" : ",\n") + event.dump();
  }
  void describe(const char *what, size_t process, size_t thread,
                const ordered_json &arguments) {
    add({{"name", what},
         {"ph", "M"},
         {"pid", process},
         {"tid", thread},
         {"args", arguments}});
  }

  std::string text;
};

/// Whole microseconds without a fraction, as they read better.
ordered_json microseconds(int64_t time, const Timeline &timeline) {
  double scale = timeline.slots ? 1 : timeline.unit->microseconds;
  if (scale == 1)
    return time;
  return static_cast<double>(time) * scale;
}

void addActions(Events &events, const Timeline &timeline, size_t process) {
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i) {
      const Action &action = timeline.schedule.workers[w][i];
      const char *kind = nameOf(action.kind);
      ordered_json arguments = {{"worker", w},
                                {"kind", kind},
                                {"pipeline", action.pipeline},
                                {"stage", action.stage},
                                {"micro_batch", action.microBatch}};
      if (timeline.problem.steps > 1)
        arguments["step"] = action.microBatch / timeline.problem.microBatches();
      if (action.microBatches > 1)
        arguments["micro_batches"] = action.microBatches;
      if (action.parts > 1) {
        arguments["part"] = action.part;
        arguments["parts"] = action.parts;
      }
      events.add({{"name",
                   std::string(kind) + " " + coverOf(timeline.problem, action)},
                  {"cat", kind},
                  {"ph", "X"},
                  {"ts", microseconds(timeline.timing.starts[w][i], timeline)},
                  {"dur", microseconds(timeline.duration(action), timeline)},
                  {"pid", process},
                  {"tid", w},
                  {"args", std::move(arguments)}});
    }
}

} // namespace

std::string renderChromeTrace(std::span<const Timeline> timelines) {
  Events events;
  ordered_json units = ordered_json::object();
  for (size_t p = 0; p < timelines.size(); ++p) {
    const Timeline &timeline = timelines[p];
    bool bare = timeline.slots || !timeline.unit->isDuration;
    units[timeline.name] =
        bare ? (timeline.slots ? "one slot is shown as 1 us"
                               : "one unit of time is shown as 1 us")
             : std::string("costs are in ") + timeline.unit->name;
    events.describe("process_name", p, 0, {{"name", timeline.title}});
    events.describe("process_sort_index", p, 0, {{"sort_index", p}});
    for (size_t w = 0; w < timeline.schedule.workers.size(); ++w) {
      events.describe("thread_name", p, w, {{"name", "P" + std::to_string(w)}});
      events.describe("thread_sort_index", p, w, {{"sort_index", w}});
    }
    addActions(events, timeline, p);
  }
  ordered_json other = {{"unit", units}};
  return "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + other.dump() +
         ",\n\"traceEvents\":[\n" + events.text + "\n]}\n";
}

} // namespace chimera::schedule
