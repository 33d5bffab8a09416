//===- ChromeTrace.cpp - A schedule as a trace ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/ChromeTrace.h"

#include "compiler/schedule/simulate/ActionRules.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/timeline/Differences.h"
#include "compiler/schedule/timeline/SideBySide.h"

#include <nlohmann/json.hpp>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

/// JSON on one line. Bytes that are not UTF-8 are replaced.
std::string lineOf(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// The events of a document as text, one line for each event. A JSON value with
/// all events would need many times the memory.
class TraceEvents {
public:
  void add(const ordered_json &event) {
    text += (text.empty() ? "" : ",\n") + lineOf(event);
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

/// The events of one timeline.
class Process {
public:
  /// Message ids of this timeline begin at `firstMessage`.
  Process(const Timeline &timeline, size_t process, int64_t firstMessage,
          TraceEvents &events)
      : timeline(timeline), process(process), firstMessage(firstMessage),
        events(events), rules(timeline.problem),
        resident(residentBytes(timeline.problem)),
        ends(rules.actionIds().count()) {
    for (const std::vector<Action> &row : timeline.schedule.workers)
      for (const Action &action : row) {
        if (auto message = rules.sentBy(action))
          ends[message->id] |= kMade;
        if (auto message = rules.receivedBy(action))
          ends[message->id] |= kAwaited;
      }
  }

  void add() {
    events.describe("process_name", process, 0, {{"name", timeline.title}});
    events.describe("process_sort_index", process, 0,
                    {{"sort_index", process}});
    for (size_t w = 0; w < timeline.schedule.workers.size(); ++w) {
      events.describe("thread_name", process, w, {{"name", nameOf(w)}});
      events.describe("thread_sort_index", process, w, {{"sort_index", w}});
    }
    for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
      for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i)
        addAction(w, i);
    if (timeline.occupations)
      addOccupations();
    if (timeline.syncAndUpdate)
      addSyncAndUpdate();
    // The actions of a part of a run do not determine the bytes over time
    // (Timeline::isPart).
    if (!timeline.problem.bytes.empty() && !timeline.isPart)
      for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
        addMemory(w);
  }

  /// Adds the other activities of the workers in a measured run.
  void add(const std::vector<std::vector<MeasuredStep::Other>> &others) {
    for (size_t w = 0; w < others.size(); ++w)
      for (const MeasuredStep::Other &other : others[w])
        addSpan(other.name, other.category, other, w);
  }

  /// The first message id that the next timeline may use.
  int64_t nextMessage() const {
    return firstMessage + rules.actionIds().count();
  }

private:
  static constexpr uint8_t kMade = 1, kAwaited = 2;

  static std::string nameOf(size_t worker) {
    return "P" + std::to_string(worker);
  }

  /// The time `ticks / parts` in microseconds. Whole numbers are written
  /// without a fraction.
  ordered_json microseconds(int64_t ticks, int64_t parts = 1) const {
    double unit = timeline.slots ? 1 : timeline.scale.unit->microseconds;
    parts *= timeline.scale.perUnit;
    if (unit == 1 && ticks % parts == 0)
      return ticks / parts;
    return static_cast<double>(ticks) * unit / static_cast<double>(parts);
  }

  /// True if both ends of the message are in this timeline. If steps overlap,
  /// the other end may be in another step.
  bool isWhole(const Message &message) const {
    return ends[message.id] == (kMade | kAwaited);
  }

  void addAction(size_t worker, size_t index) {
    const Action &action = timeline.schedule.workers[worker][index];
    int64_t start = timeline.timing.starts[worker][index];
    int64_t duration = timeline.duration(worker, index);
    const char *kind = schedule::nameOf(action.kind);
    ordered_json arguments = {{"worker", worker},
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
    std::string cover = microBatchText(timeline, action);
    events.add({{"name", std::string(kind) + " " + cover},
                {"cat", kind},
                {"ph", "X"},
                {"ts", microseconds(start)},
                {"dur", microseconds(duration)},
                {"pid", process},
                {"tid", worker},
                {"args", std::move(arguments)}});
    auto awaited = rules.receivedBy(action);
    if (awaited && isWhole(*awaited))
      addEnd("f", *awaited, action, worker, 2 * start + duration);
    auto sent = rules.sentBy(action);
    if (sent && isWhole(*sent))
      addEnd("s", *sent, action, worker, 2 * start + duration);
  }

  void addSpan(const std::string &name, const std::string &category,
               const Span &span, size_t thread) {
    events.add({{"name", name},
                {"cat", category},
                {"ph", "X"},
                {"ts", microseconds(span.begin)},
                {"dur", microseconds(span.end - span.begin)},
                {"pid", process},
                {"tid", thread}});
  }

  void addOccupations() {
    for (size_t w = 0; w < timeline.occupations->size(); ++w)
      for (const Occupation &occupation : (*timeline.occupations)[w])
        addSpan(describe(timeline,
                         timeline.schedule.workers[w][occupation.index],
                         occupation),
                "message time", occupation, w);
  }

  /// Adds waits and updates to the workers' rows. Each worker gets a second
  /// row, with the all-reduces that it takes part in. If `isPart`, there is no
  /// second row, because only the waits are known.
  void addSyncAndUpdate() {
    const SyncAndUpdate &syncAndUpdate = *timeline.syncAndUpdate;
    size_t workers = syncAndUpdate.work.size();
    for (size_t w = 0; w < workers; ++w) {
      if (!timeline.isPart && !syncAndUpdate.allReduces.empty()) {
        events.describe("thread_name", process, workers + w,
                        {{"name", "all-reduces of " + nameOf(w)}});
        // Places this second row directly after the worker's row of actions.
        events.describe("thread_sort_index", process, workers + w,
                        {{"sort_index", w}});
      }
      for (const SyncAndUpdate::Work &work : syncAndUpdate.work[w])
        if (work.isUpdate())
          addSpan("update of stage " + std::to_string(*work.stage), "update",
                  work, w);
        else
          addSpan("wait for " + nameOfAllReduce(work.stage, work.isNorm),
                  "wait", work, w);
    }
    for (const SyncAndUpdate::AllReduce &allReduce : syncAndUpdate.allReduces)
      for (int32_t worker : allReduce.workers)
        if (allReduce.end > allReduce.begin)
          addSpan(nameOfAllReduce(allReduce.stage, allReduce.isNorm),
                  "all-reduce", allReduce, workers + worker);
  }

  /// Adds one end of a message's arrow. A viewer attaches the end to the action
  /// that encloses its time. Two actions may share a start or end time, so the
  /// time of the end is the middle of its action.
  void addEnd(const char *phase, const Message &message, const Action &action,
              size_t worker, int64_t twiceMiddle) {
    bool isStart = phase[0] == 's';
    ordered_json event = {{"name", nameOfMessage(timeline, action)},
                          {"cat", "message"},
                          {"ph", phase},
                          {"id", firstMessage + message.id},
                          {"ts", microseconds(twiceMiddle, 2)},
                          {"pid", process},
                          {"tid", worker}};
    if (!isStart)
      event["bp"] = "e"; // attach to the enclosing action, not to the next one
    event["args"] = {{isStart ? "to" : "from", nameOf(message.peer)}};
    events.add(event);
  }

  void addMemory(size_t worker) {
    std::string name = "bytes of " + nameOf(worker);
    for (auto [time, bytes] :
         memoryOverTime(timeline.problem, timeline.schedule, timeline.timing,
                        static_cast<int32_t>(worker), resident[worker]))
      events.add({{"name", name},
                  {"ph", "C"},
                  {"ts", microseconds(time)},
                  {"pid", process},
                  {"args", {{"bytes", bytes}}}});
  }

  const Timeline &timeline;
  size_t process;
  int64_t firstMessage;
  TraceEvents &events;
  ActionRules rules;
  /// Bytes that each worker always needs, independent of its order.
  std::vector<int64_t> resident;
  std::vector<uint8_t> ends; ///< by the id of a message's producer: which ends
                             ///< of the message are known
};

std::string documentOf(const ordered_json &other, const TraceEvents &events) {
  return "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + lineOf(other) +
         ",\n\"traceEvents\":[\n" + events.text + "\n]}\n";
}

/// Converts nanoseconds to microseconds.
ordered_json timesInMicroseconds(int64_t predicted, int64_t measured) {
  return {{"predicted_us", static_cast<double>(predicted) / 1000},
          {"measured_us", static_cast<double>(measured) / 1000}};
}

} // namespace

std::string renderChromeTrace(std::span<const Timeline> timelines) {
  TraceEvents events;
  ordered_json units = ordered_json::object();
  int64_t message = 0;
  for (size_t p = 0; p < timelines.size(); ++p) {
    const Timeline &timeline = timelines[p];
    bool bare = timeline.slots || !timeline.scale.unit->isDuration;
    units[timeline.name] =
        bare ? (timeline.slots ? "one slot is shown as 1 us"
                               : "one unit of time is shown as 1 us")
             : std::string("costs are in ") + timeline.scale.unit->name;
    Process process(timeline, p, message, events);
    process.add();
    message = process.nextMessage();
  }
  ordered_json other = {{"unit", units}};
  return documentOf(other, events);
}

std::string renderChromeTraceSideBySide(const SideBySide &both) {
  constexpr size_t kMost = 20; // of each kind of difference
  Timeline predicted = both.timeline, measured = both.measured;
  predicted.title = "predicted: " + predicted.title;
  measured.title = "measured: " + both.nameOfRun();
  TraceEvents events;
  Process first(predicted, 0, 0, events);
  first.add();
  Process second(measured, 1, first.nextMessage(), events);
  second.add();
  second.add(both.run.others);
  ordered_json differences = ordered_json::object();
  for (const DifferenceKind &kind : differenceKinds()) {
    ordered_json &list = differences[kind.name] = ordered_json::array();
    for (const Difference &difference :
         largestDifferences(kind, both.prediction, both.run, kMost)) {
      ordered_json entry = {{"what", describe(both.measured, kind, difference)},
                            {"worker", difference.ref.worker}};
      entry.update(
          timesInMicroseconds(difference.predicted, difference.measured));
      list.push_back(std::move(entry));
    }
  }
  ordered_json other = {{"measured", both.nameOfRun()},
                        {"step", timesInMicroseconds(both.prediction.length(),
                                                     both.run.length())},
                        {"differences", differences}};
  return documentOf(other, events);
}

} // namespace chimera::schedule
