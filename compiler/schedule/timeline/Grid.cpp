//===- Grid.cpp - A schedule as a grid of characters ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Grid.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/timeline/Timeline.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace chimera::schedule {

namespace {

/// The most columns of a grid. With 32 workers, these already fill thousands of
/// lines.
constexpr int64_t kMostColumns = 1000;
/// The most columns of a grid whose times are rounded.
constexpr int64_t kMostRounded = 250;

void appendRow(std::string &text, const std::string &head, size_t headWidth,
               std::span<const std::string> cells, size_t width) {
  std::string row = head;
  row.resize(headWidth, ' ');
  for (const std::string &cell : cells) {
    row += cell;
    row.append(width - cell.size(), ' ');
  }
  row.erase(row.find_last_not_of(' ') + 1);
  text += row + "\n";
}

/// A wait or an update in the grid: "A1", "N" (the norm), "U1", "u1".
std::string cellOf(const Problem &problem, const SyncAndUpdate::Work &work) {
  const char *letter = work.isNorm                            ? "N"
                       : !work.isUpdate()                     ? "A"
                       : problem.pipelines[*work.pipeline].up ? "u"
                                                              : "U";
  return letter + (work.stage ? std::to_string(*work.stage) : "");
}

/// The largest of 1, 2, 5, 10, 20, 50, … units that is no longer than any
/// action of `timeline`; in ticks, at least 1.
int64_t roundColumn(const Timeline &timeline) {
  int64_t shortest = timeline.end();
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i)
      shortest = std::min(shortest, timeline.duration(w, i));
  int64_t column = 1;
  for (int64_t power = timeline.scale.perUnit; power <= shortest; power *= 10) {
    for (int64_t digit : {1, 2, 5})
      if (power <= shortest / digit)
        column = digit * power;
    if (power > shortest / 10)
      break;
  }
  return column;
}

/// The time of a column of the grid in ticks: one tick, or more if that would
/// be too many columns. 0 if no column is long enough.
int64_t columnOf(const Timeline &timeline) {
  if (timeline.end() <= kMostColumns)
    return 1;
  if (timeline.slots)
    return 0;
  int64_t column = roundColumn(timeline);
  return (timeline.end() - 1) / column < kMostRounded ? column : 0;
}

/// A line that replaces a grid with too many columns.
std::string tooWide(const Timeline &timeline) {
  int64_t columns = timeline.end(), most = kMostColumns;
  std::string unit = " slots";
  if (!timeline.slots) {
    const int64_t column = roundColumn(timeline);
    columns = 1 + (timeline.end() - 1) / column;
    most = kMostRounded;
    unit = " columns of " +
           roundedTime(static_cast<double>(column), timeline.scale) +
           ", for the shortest action";
  }
  return "(no grid: it would have " + std::to_string(columns) + unit +
         ", and at most " + std::to_string(most) +
         " are drawn: write a picture or a trace)\n";
}

/// The names of the grid's columns, and the head of their row.
std::pair<std::vector<std::string>, std::string>
headOf(const Timeline &timeline, int64_t column) {
  const TimeScale &scale = timeline.scale;
  std::vector<std::string> names;
  std::string head = timeline.slots ? "slot" : "t";
  Magnitude magnitude{1, ""};
  if (column > 1) {
    magnitude = magnitudeOf(scale.units(static_cast<double>(timeline.end())),
                            *scale.unit);
    head += magnitude.name.empty() ? "" : " " + magnitude.name;
  }
  for (int64_t t = 0; t < timeline.end(); t += column) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g",
                  scale.units(static_cast<double>(t)) / magnitude.units);
    names.push_back(column > 1 ? text : decimalNumber(t, scale.perUnit));
  }
  return {std::move(names), std::move(head)};
}

/// The number of the column that begins nearest to `time`.
int64_t nearestColumn(int64_t time, int64_t column) {
  return (time + column / 2) / column;
}

/// The marks of a grid that not every grid has, each with an explanation.
class GridMarks {
public:
  explicit GridMarks(const Timeline &timeline)
      : timeline(timeline), problem(timeline.problem) {}

  void add(const Action &action) {
    if (problem.pipelines[action.pipeline].up)
      put(Mark::Up, "small letters: the pipeline whose activations go up the "
                    "workers");
    if (action.kind > Kind::Backward) // F and B need no explanation
      put(Mark::Kind, rowOf(action.kind).letter + (": " + wordsOf(action.kind)),
          action.kind);
    if (beginsPair(action))
      put(Mark::Pair, cellOf(timeline, action) +
                          "+: runs as one with the next action (a pair)");
    else if (action.joinedWithNext)
      put(Mark::Joined,
          cellOf(timeline, action) + "+: joined with the next weight gradient");
    if (action.microBatches > 1)
      put(Mark::Range,
          cellOf(timeline, action) + ": of micro-batches " +
              std::to_string(action.microBatch) + " to " +
              std::to_string(action.microBatch + action.microBatches - 1));
    if (action.parts > 1)
      put(Mark::Part, cellOf(timeline, action) + ": part " +
                          std::to_string(action.part + 1) + " of " +
                          std::to_string(action.parts));
    const int32_t chunk = timeline.chunks.numberOf(action);
    if (chunk == 1)
      put(Mark::SecondChunk, chunkMark(1) + ": on the worker's second stage");
    if (chunk > 1)
      put(Mark::LaterChunk, chunkMark(2) + ": on its third stage");
  }

  void add(const SyncAndUpdate::Work &work) {
    const std::string cell = cellOf(problem, work);
    if (work.isUpdate())
      put(Mark::Update,
          cell + ": update of stage " + std::to_string(work.stage.value_or(0)));
    else
      put(work.stage    ? Mark::Wait
          : work.isNorm ? Mark::NormWait
                        : Mark::TiedWait,
          cell + ": wait for the " + nameOfAllReduce(work.stage, work.isNorm));
  }

  std::string text() const {
    std::string all;
    for (const auto &[mark, explanation] : explanations)
      all += (all.empty() ? "" : "; ") + explanation;
    return all;
  }

private:
  /// The signs in the grid. The text below it explains them in this order.
  enum class Mark {
    Up,
    Kind, ///< each kind has a sign of its own
    Pair,
    Joined,
    Range,
    Part,
    SecondChunk,
    LaterChunk,
    Wait,
    TiedWait,
    NormWait,
    Update
  };

  void put(Mark mark, const std::string &explanation,
           schedule::Kind kind = {}) {
    explanations.try_emplace({mark, kind}, explanation);
  }

  const Timeline &timeline;
  const Problem &problem;
  std::map<std::pair<Mark, schedule::Kind>, std::string> explanations;
};

} // namespace

std::string renderGrid(const Timeline &timeline) {
  const auto &[name, title, problem, schedule, timing, slots, scale, lineWidth,
               picture, syncAndUpdate, step, occupations, isPart, chunks] =
      timeline;
  const int64_t column = columnOf(timeline);
  if (column == 0)
    return tooWide(timeline);
  std::vector<std::vector<std::string>> rows;
  auto [head, headName] = headOf(timeline, column);
  bool isRounded = false;
  size_t width = 0;
  for (const std::string &time : head)
    width = std::max(width, time.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back(head.size(), ".");
    auto fill = [&](int64_t begin, int64_t end, const char *cell) {
      isRounded |= begin % column != 0 || end % column != 0;
      begin = nearestColumn(begin, column);
      end = std::min<int64_t>(nearestColumn(end, column), std::ssize(row));
      if (begin < end)
        std::fill(row.begin() + begin, row.begin() + end, cell);
      return begin < end ? begin : -1;
    };
    auto put = [&](int64_t begin, int64_t end, std::string label) {
      int64_t first = fill(begin, end, "=");
      if (first < 0)
        return;
      width = std::max(width, label.size());
      row[first] = std::move(label);
    };
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      int64_t start = timing.starts[w][i];
      put(start, start + timeline.duration(w, i),
          cellOf(timeline, action) + (action.joinedWithNext ? "+" : ""));
    }
    if (occupations)
      for (const Occupation &occupation : (*occupations)[w])
        fill(occupation.begin, occupation.end, occupation.isSend ? ">" : "<");
    if (syncAndUpdate)
      for (const SyncAndUpdate::Work &work : syncAndUpdate->work[w])
        put(work.begin, work.end, cellOf(problem, work));
  }
  auto nameOf = [](size_t w) { return "P" + std::to_string(w); };
  size_t headWidth = std::max(
      {nameOf(rows.size() - 1).size() + 1, headName.size() + 1, size_t{5}});
  ++width; // one blank after each cell
  size_t columns = head.size();
  if (lineWidth > 0) {
    // `room` is one character larger than the line, because the blank after the
    // last cell of a line is not printed.
    size_t room = lineWidth + 1 - std::min(lineWidth, headWidth);
    columns = std::max(room / width, size_t{1});
  }
  std::string text;
  for (size_t begin = 0; begin < head.size(); begin += columns) {
    size_t count = std::min(columns, head.size() - begin);
    text += begin > 0 ? "\n" : "";
    appendRow(text, headName, headWidth, std::span(head).subspan(begin, count),
              width);
    for (size_t w = 0; w < rows.size(); ++w)
      appendRow(text, nameOf(w), headWidth,
                std::span(rows[w]).subspan(begin, count), width);
  }
  if (column > 1)
    text += "(a column is " + shortTime(static_cast<double>(column), scale) +
            (isRounded ? "; starts and ends are rounded to columns" : "") +
            ")\n";
  return text;
}

std::string describeMarks(const Timeline &timeline) {
  const int64_t column = columnOf(timeline);
  if (column == 0)
    return {};
  GridMarks marks(timeline);
  for (const std::vector<Action> &actions : timeline.schedule.workers)
    for (const Action &action : actions)
      marks.add(action);
  if (timeline.syncAndUpdate)
    for (const auto &all : timeline.syncAndUpdate->work)
      for (const SyncAndUpdate::Work &work : all)
        if (nearestColumn(work.begin, column) < nearestColumn(work.end, column))
          marks.add(work);
  return marks.text();
}

} // namespace chimera::schedule
