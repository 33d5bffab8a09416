//===- Html.cpp - A schedule as a page to look around in ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Html.h"

#include "compiler/schedule/simulate/ActionRules.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/Differences.h"
#include "compiler/schedule/timeline/SvgPalette.h"

#include <map>
#include <nlohmann/json.hpp>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

// CMake makes these texts from the files of the same names.
constexpr const char kViewerCss[] =
#include "Viewer.css.inc"
    ;
constexpr const char *kScripts[] = {
#include "Rows.js.inc"
    ,
#include "View.js.inc"
    ,
#include "Drawing.js.inc"
    ,
#include "Marks.js.inc"
    ,
#include "Input.js.inc"
};

/// Makes the JSON of one timeline.
class Data {
public:
  explicit Data(const Timeline &timeline)
      : timeline(timeline), problem(timeline.problem), rules(problem),
        palette(problem), numbers(rules.actionIds().count(), -1) {
    int32_t next = 0;
    for (const std::vector<Action> &row : timeline.schedule.workers)
      for (const Action &action : row) {
        numbers[rules.idOf(action, rules.ruleOf(action))] = next++;
        colourNumbers[keyOf(action)] = 0;
      }
    // A legend has the colours in the order of the keys.
    for (auto &[key, number] : colourNumbers) {
      number = static_cast<int32_t>(colours.size());
      colours.push_back(colourOf(key));
    }
  }

  /// `ticks` is the number of ticks in a unit of the page's axis.
  ordered_json make(double ticks) {
    ordered_json workers = ordered_json::array();
    for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
      workers.push_back(workerAt(w));
    addMemory(workers);
    return {{"title", timeline.title},       {"ticks", ticks},
            {"end", timeline.end()},         {"colours", std::move(colours)},
            {"isInBytes", isInBytes()},      {"most", most},
            {"workers", std::move(workers)}, {"allReduces", allReduces()}};
  }

private:
  bool isInBytes() const { return !problem.bytes.empty(); }

  ordered_json workerAt(size_t worker) {
    const std::vector<Action> &order = timeline.schedule.workers[worker];
    const std::vector<int64_t> &starts = timeline.timing.starts[worker];
    std::vector<int32_t> colour, stage, same, other;
    std::vector<int64_t> length, sends;
    std::vector<std::string> label;
    for (size_t i = 0; i < order.size(); ++i) {
      const Action &action = order[i];
      const ActionRule &rule = rules.ruleOf(action);
      const int64_t id = rules.idOf(action, rule);
      colour.push_back(colourNumbers.at(keyOf(action)));
      label.push_back(microBatchText(timeline, action));
      stage.push_back(action.stage);
      length.push_back(timeline.duration(worker, i));
      same.push_back(numberOf(id, rule.sameStage));
      other.push_back(numberOf(id, rule.otherStage));
      if (isInBytes())
        sends.push_back(bytesSentBy(action));
    }
    ordered_json made = {{"colour", colour}, {"label", label},
                         {"stage", stage},   {"start", starts},
                         {"length", length}, {"same", same},
                         {"other", other},   {"spans", spansOf(worker)}};
    if (isInBytes())
      made["sends"] = sends;
    return made;
  }

  int32_t numberOf(int64_t id, int64_t offset) const {
    return offset == 0 ? -1 : numbers[id + offset];
  }

  int64_t bytesSentBy(const Action &action) const {
    std::optional<Message> message = rules.sentBy(action);
    return message ? problem.bytes[message->stage].boundary *
                         action.microBatches / action.parts
                   : 0;
  }

  /// Actions with equal keys have the same colour. A key has the kind, whether
  /// the pipeline goes up, and the chunk.
  using ColourKey = std::tuple<Kind, bool, int32_t>;

  ColourKey keyOf(const Action &action) const {
    return {action.kind, problem.pipelines[action.pipeline].up,
            timeline.chunks.numberOf(action)};
  }

  ordered_json colourOf(const ColourKey &key) const {
    const auto [kind, up, chunk] = key;
    const svg::Palette::Shade shade = palette.shadeOf(kind, up, chunk);
    std::string name = wordsOf(kind);
    if (palette.hasDirections())
      name += up ? ", up" : ", down";
    if (palette.chunks() > 1)
      name += ", chunk " + std::to_string(chunk);
    return {shade.fill, shade.edge, shade.hasBlackText ? "#000000" : "#ffffff",
            name};
  }

  /// The messages, waits and updates of a worker.
  ordered_json spansOf(size_t worker) const {
    ordered_json spans = ordered_json::array();
    auto add = [&](const Span &span, const char *style,
                   const std::string &name) {
      spans.push_back({span.begin, span.end, style, name});
    };
    if (timeline.occupations) {
      for (const Occupation &occupation : (*timeline.occupations)[worker])
        add(occupation, "message",
            describe(timeline,
                     timeline.schedule.workers[worker][occupation.index],
                     occupation));
    }
    if (timeline.syncAndUpdate) {
      for (const SyncAndUpdate::Work &work :
           timeline.syncAndUpdate->work[worker])
        if (work.isUpdate())
          add(work, "update", "update of stage " + std::to_string(*work.stage));
        else
          add(work, "wait",
              "wait for " + nameOfAllReduce(work.stage, work.isNorm));
    }
    return spans;
  }

  /// Each all-reduce is in the first row that is free when it begins.
  ordered_json allReduces() const {
    ordered_json rows = ordered_json::array();
    if (!timeline.syncAndUpdate || timeline.isPart)
      return rows;
    std::vector<SyncAndUpdate::AllReduce> all;
    std::ranges::copy_if(
        timeline.syncAndUpdate->allReduces, std::back_inserter(all),
        [](const Span &span) { return span.begin < span.end; });
    std::ranges::stable_sort(all, {}, &Span::begin);
    std::vector<int64_t> ends; // of the rows
    for (const SyncAndUpdate::AllReduce &allReduce : all) {
      const auto row = std::ranges::find_if(
          ends, [&](int64_t end) { return end <= allReduce.begin; });
      const size_t number = row - ends.begin();
      if (row == ends.end()) {
        ends.push_back(0);
        rows.push_back(ordered_json::array());
      }
      ends[number] = allReduce.end;
      std::string name = nameOfAllReduce(allReduce.stage, allReduce.isNorm);
      const char *separator = " on ";
      for (int32_t worker : allReduce.workers) {
        name += separator + ("P" + std::to_string(worker));
        separator = ", ";
      }
      rows[number].push_back(
          {allReduce.begin, allReduce.end, "allReduce", name});
    }
    return rows;
  }

  /// Adds the bytes over time or, if the sizes of stages are not known, the
  /// number of activations: each stage then has a stash of one byte.
  void addMemory(ordered_json &workers) {
    // The actions of a part of a run do not determine the bytes over time.
    if (timeline.isPart)
      return;
    Problem counted = problem;
    if (!isInBytes())
      counted.bytes.assign(problem.stages.size(),
                           {.stash = 1, .weightStash = 1});
    const std::vector<int64_t> resident = residentBytes(counted);
    for (size_t w = 0; w < workers.size(); ++w) {
      std::vector<int64_t> steps;
      for (auto [time, value] :
           memoryOverTime(counted, timeline.schedule, timeline.timing,
                          static_cast<int32_t>(w), resident[w])) {
        if (!steps.empty() && steps[steps.size() - 2] == time)
          steps.resize(steps.size() - 2);
        if (!steps.empty() && steps.back() == value)
          continue;
        steps.insert(steps.end(), {time, value});
        most = std::max(most, value);
      }
      workers[w]["memory"] = std::move(steps);
    }
  }

  const Timeline &timeline;
  const Problem &problem;
  ActionRules rules;
  svg::Palette palette;
  std::vector<int32_t> numbers;               ///< of actions, by id
  std::map<ColourKey, int32_t> colourNumbers; ///< numbers in `colours`
  ordered_json colours = ordered_json::array();
  int64_t most = 0; ///< the largest value of all curves of memory
};

/// JSON as the content of a script element: no text in it can end the element.
std::string inScript(const ordered_json &value) {
  std::string text =
      value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string page(const std::string &title, const ordered_json &data) {
  std::string scripts;
  for (const char *script : kScripts)
    scripts += std::string("<script>\n") + script + "</script>\n";
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<title>" +
         escapeXml(title) + "</title>\n<style>\n" + kViewerCss +
         "</style>\n</head>\n<body>\n<header>\n"
         "<span><button value=\"+\" title=\"zoom in (+)\">+</button>\n"
         "<button value=\"-\" title=\"zoom out (-)\">&minus;</button>\n"
         "<button value=\"0\" title=\"show all (0)\">all</button></span>\n"
         "<span id=\"legend\"></span>\n"
         "<span id=\"help\">drag to move, Ctrl and wheel to zoom, click to "
         "keep a mark</span>\n</header>\n"
         "<div id=\"rows\" tabindex=\"0\" role=\"img\" aria-label=\"" +
         escapeXml(title) +
         "\"><canvas></canvas><canvas></canvas>"
         "<div id=\"tip\" hidden></div></div>\n<div id=\"notes\"></div>\n"
         "<noscript>This page needs JavaScript.</noscript>\n"
         "<script type=\"application/json\" id=\"data\">" +
         inScript(data) + "</script>\n" + scripts + "</body>\n</html>\n";
}

/// The time axis of a page.
struct Axis {
  std::string title, unit = {}; ///< `unit` follows a time
  double microseconds = 0; ///< in a unit; 0 if the axis counts bare numbers

  /// The number of ticks of `timeline` in a unit of the axis.
  double ticksOf(const Timeline &timeline) const {
    if (timeline.slots)
      return 1;
    const auto perUnit = static_cast<double>(timeline.scale.perUnit);
    return microseconds > 0
               ? perUnit * microseconds / timeline.scale.unit->microseconds
               : perUnit;
  }
};

/// An axis for times of up to `longest` microseconds. It counts in `unit` or,
/// if the times are long, in a larger one.
Axis axisUpTo(double longest, const TimeUnit &unit) {
  const Magnitude magnitude = magnitudeOf(longest / unit.microseconds, unit);
  return {"time in " + magnitude.name, magnitude.name,
          magnitude.units * unit.microseconds};
}

double endInMicroseconds(const Timeline &timeline) {
  return timeline.scale.units(static_cast<double>(timeline.end())) *
         timeline.scale.unit->microseconds;
}

Axis axisOf(std::span<const Timeline> timelines) {
  const Timeline &first = timelines.front();
  double longest = 0;
  for (const Timeline &timeline : timelines) {
    if (timeline.slots || !timeline.scale.unit->isDuration)
      return {first.axis()};
    longest = std::max(longest, endInMicroseconds(timeline));
  }
  return axisUpTo(longest, *first.scale.unit);
}

} // namespace

std::string renderHtml(std::span<const Timeline> timelines) {
  const Axis axis = axisOf(timelines);
  ordered_json all = ordered_json::array();
  std::string title;
  for (const Timeline &timeline : timelines) {
    all.push_back(Data(timeline).make(axis.ticksOf(timeline)));
    title += (title.empty() ? "" : " · ") + timeline.title;
  }
  return page(title, {{"axis", axis.title},
                      {"unit", axis.unit},
                      {"isSideBySide", false},
                      {"notes", ordered_json::array()},
                      {"timelines", std::move(all)}});
}

std::string renderHtmlSideBySide(const SideBySide &both) {
  constexpr size_t kMost = 3;          // of each kind of difference
  constexpr double kNanosecond = 1e-3; // in microseconds
  const Axis axis = axisUpTo(kNanosecond * static_cast<double>(both.end()),
                             *both.predicted.scale.unit);
  ordered_json notes = {both.describeStep() +
                        " · measured: " + both.nameOfRun()};
  if (std::string note = both.noteOfRun(); !note.empty())
    notes.push_back(note);
  for (const DifferenceKind &kind : differenceKinds())
    for (const Difference &difference :
         largestDifferences(kind, both.prediction, both.run, kMost))
      notes.push_back(describe(both.measured, kind, difference));
  ordered_json predicted =
      Data(both.predicted).make(axis.ticksOf(both.predicted));
  ordered_json measured = Data(both.measured).make(axis.ticksOf(both.measured));
  predicted["title"] = both.timeline.title;
  measured["title"] = "measured: " + both.nameOfRun();
  predicted["end"] = measured["end"] = both.end();
  for (size_t w = 0; w < both.run.others.size(); ++w)
    for (const MeasuredStep::Other &other : both.run.others[w])
      measured["workers"][w]["spans"].push_back(
          {other.begin, other.end, "other", other.name});
  return page(both.timeline.title,
              {{"axis", axis.title},
               {"unit", axis.unit},
               {"isSideBySide", true},
               {"notes", std::move(notes)},
               {"timelines", {std::move(predicted), std::move(measured)}}});
}

} // namespace chimera::schedule
