//===- OrderFile.cpp - A pipeline as the orders of its workers ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/OrderFile.h"

#include "compiler/describe/OrderWords.h"
#include "compiler/describe/Spelling.h"
#include "runtime/program/Printable.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace chimera {

using namespace words;

namespace {

using Line = OrderFile::Line;

/// `text` with capital letters.
std::string capitals(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    if (c >= 'a' && c <= 'z')
      c = static_cast<char>(c - 'a' + 'A');
  return result;
}

class Reader {
public:
  Reader(std::string_view path, std::string_view text, std::string_view shown,
         std::string &error)
      : path(path), text(text), shown(shown), rest(text), error(error) {}

  std::optional<OrderFile> run() {
    if (!readLines() || !readWords() || !checkPlacement())
      return std::nullopt;
    std::vector<schedule::Pipeline> pipelines = makePipelines();
    for (schedule::Pipeline &pipeline : pipelines)
      if (!groupForwards(pipeline))
        return std::nullopt;
    return OrderFile{std::move(lines), stages, microBatches,
                     std::move(recomputed), std::move(pipelines)};
  }

private:
  using Cell = std::pair<int32_t, int32_t>; ///< micro-batch and stage

  /// A word and its place.
  struct Word {
    int32_t worker;
    size_t column;
    std::string_view text;
  };

  /// Sets `error` to `message` after the path, line and column. Unless the line
  /// is empty, appends the line and a caret under `column`.
  bool fail(const Line &line, size_t column, const std::string &message) {
    error = program::printable(std::string(path) + ":" +
                               std::to_string(line.number) + ":" +
                               std::to_string(column) + ": error: " + message);
    const std::string_view source = shownLine(line.whole);
    std::string whole(source.substr(0, source.find_last_not_of('\r') + 1));
    if (whole.empty())
      return false;
    // The terminal may show a tab with any width. Write a blank instead, so
    // that the caret is under the right column.
    std::ranges::replace(whole, '\t', ' ');
    std::string before = program::printable(whole.substr(0, column - 1));
    error += "\n" + program::printable(whole) + "\n" +
             std::string(before.size(), ' ') + "^";
    return false;
  }

  /// The line to show for the line `whole` of the text.
  std::string_view shownLine(std::string_view whole) const {
    return whole.empty() || shown.empty()
               ? whole
               : shown.substr(static_cast<size_t>(whole.data() - text.data()),
                              whole.size());
  }

  bool readLines() {
    for (size_t number = 1; !rest.empty(); ++number) {
      std::string_view whole = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(whole.size() + 1, rest.size()));
      std::string_view line = whole;
      skipBlanks(line);
      if (line.empty() || isComment(line))
        continue;
      auto column = [&] { return line.data() - whole.data() + 1; };
      if (hasEquals(line))
        return fail({number, 1, whole, whole}, column() + line.find('='),
                    "expected a colon after the worker, such as P0:, got =");
      std::optional<int32_t> worker = takeWorker(line);
      if (worker && static_cast<size_t>(*worker) != lines.size())
        return fail({number, 1, whole, whole}, 1,
                    "expected the line of worker " +
                        std::to_string(lines.size()) + ", got that of " +
                        std::to_string(*worker));
      line = line.substr(0, line.find('#'));
      skipBlanks(line);
      line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
      lines.push_back({number, static_cast<size_t>(column()), line, whole});
    }
    if (lines.empty())
      return fail({1, 1, "", ""}, 1,
                  "expected a line for each worker, got none");
    if (lines.size() > static_cast<size_t>(kMost))
      return fail(lines.back(), 1, "expected at most 65535 workers");
    return true;
  }

  /// Calls `visit(word, column)` for each word of a line. Stops and returns
  /// false if `visit` returns false.
  template <typename Visit>
  static bool eachWord(const Line &line, Visit visit) {
    std::string_view text = line.text;
    while (skipBlanks(text), !text.empty()) {
      std::string_view word = text.substr(0, text.find_first_of(" \t\r"));
      if (!visit(word, line.column + (word.data() - line.text.data())))
        return false;
      text.remove_prefix(word.size());
    }
    return true;
  }

  bool readWords() {
    for (int32_t worker = 0; worker < workers(); ++worker)
      if (const Line &line = lines[worker];
          !eachWord(line, [&](std::string_view text, size_t column) {
            return eachAction(text, [&](std::string_view action) {
              return readWord(worker, line,
                              column + (action.data() - text.data()), action);
            });
          }))
        return false;
    return true;
  }

  /// True if a word of the file names a stage.
  bool namesStages() const {
    return std::ranges::any_of(lines, [](const Line &line) {
      return !eachWord(line, [](std::string_view text, size_t) {
        std::optional<ActionWord> word =
            actionWordOf(text.substr(0, text.find('+')));
        return !word || !word->stage;
      });
    });
  }

  /// The error message for `text`, which does not name an action.
  std::string expectedWord(std::string_view text) const {
    const bool isStageNeeded = namesStages();
    std::string message =
        isStageNeeded
            ? "expected a word such as 2F0 (forward of micro-batch 0 on stage "
              "2), 2B0, 2I0, 2W0, 2R0, 2F0-1, 2B0.1, 2F1+2B0 (a pair) or . (an "
              "idle slot), got "
            : "expected a word such as F0 (forward of micro-batch 0), B0, I0, "
              "W0, R0, F0-1, B0.1, F1+B0 (a pair) or . (an idle slot), got ";
    message += text.substr(0, 40);
    std::string capital = capitals(text);
    std::optional<ActionWord> word = actionWordOf(capital);
    if (text.find(',') != text.npos)
      return message + ": blanks separate words, write no commas";
    std::string own = fromZeroBubbleNotation(text);
    if (own.ends_with(' ') && actionWordOf(own.substr(0, own.size() - 1)))
      return message + ": if BW is a whole backward, as in zero-bubble papers, "
                       "give --zero-bubble-notation";
    if (!word)
      return message + ": a row of a grid is not an order";
    message += ": only a grid has small letters, for a second pipeline; write ";
    if (word->stage)
      return message + capital;
    if (isStageNeeded)
      return message + "the stage and a capital letter, such as 1" + capital;
    return message + capital + ", or 1" + capital +
           " (stage 1) if a worker has several stages";
  }

  bool readWord(int32_t worker, const Line &line, size_t column,
                std::string_view text) {
    if (isIdle(text))
      return true;
    if (text == "|")
      return fail(line, column,
                  "expected a schedule with a flush in an order file, got |: "
                  "describe a schedule without a flush as a chimera.pipeline");
    std::optional<ActionWord> word = actionWordOf(text);
    if (!word)
      return fail(line, column, expectedWord(text));
    if (!hasStages)
      hasStages = word->stage.has_value();
    if (*hasStages != word->stage.has_value())
      return fail(line, column,
                  *hasStages
                      ? "expected a stage in each word, such as " +
                            std::to_string(worker) + std::string(text) +
                            ", because other words have one"
                      : "expected no stage, because earlier words have none");
    int32_t stage = word->stage.value_or(worker);
    stages = std::max(stages, stage + 1);
    microBatches = std::max(microBatches, word->last + 1);
    for (int32_t m = word->first; m <= word->last; ++m) {
      if (auto [only, isFirst] =
              onlyWords.try_emplace(m, Word{worker, column, text});
          !isFirst)
        only->second.reset();
      auto [cell, isNew] = placement.try_emplace({m, stage}, worker);
      if (!isNew && cell->second != worker)
        return fail(line, column,
                    "expected stage " + std::to_string(stage) +
                        " of micro-batch " + std::to_string(m) + " on worker " +
                        std::to_string(cell->second) +
                        " only, because its line has it");
    }
    if (word->kind == schedule::Kind::Forward)
      forwards.try_emplace(word->first, word->last - word->first + 1,
                           Word{worker, column, text});
    if (word->kind == schedule::Kind::Recompute)
      recomputed.insert(stage);
    if (word->part)
      parts[word->first].insert(*word->part);
    return true;
  }

  /// True if micro-batches `m` and `other` may belong to the same direction.
  /// Then each stage that the file has for both micro-batches is on the same
  /// worker.
  bool mayBeOneDirection(int32_t m, int32_t other) const {
    for (int32_t s = 0; s < stages; ++s) {
      auto one = placement.find({m, s}), two = placement.find({other, s});
      if (one != placement.end() && two != placement.end() &&
          one->second != two->second)
        return false;
    }
    return true;
  }

  /// Stage `s` of micro-batch `m` is in no line of the file. Returns the line
  /// that should have it. If no word names a stage, this is line `s`. Otherwise
  /// it is the line that has stage `s` of another micro-batch that may belong
  /// to the same direction, or the first line if there is no such micro-batch.
  const Line &lineFor(int32_t m, int32_t s) const {
    if (!*hasStages)
      return lines[s];
    for (int32_t other = 0; other < microBatches; ++other)
      if (auto cell = placement.find({other, s});
          cell != placement.end() && mayBeOneDirection(m, other))
        return lines[cell->second];
    return lines.front();
  }

  /// Fails because stage `s` of micro-batch `m` is in no line. If some
  /// micro-batch has only one word, the number in this word is probably wrong,
  /// so the error is at this word.
  bool failAboutMissing(int32_t m, int32_t s) {
    for (const auto &[batch, word] : onlyWords)
      if (word)
        return fail(lines[word->worker], word->column,
                    "expected a forward and a backward of micro-batch " +
                        std::to_string(batch) + " on each stage, got only " +
                        std::string(word->text) + ": is its number right?");
    const Line &line = lineFor(m, s);
    return fail(line, line.column,
                "expected a forward and a backward of micro-batch " +
                    std::to_string(m) + " on stage " + std::to_string(s) +
                    ", got neither in any line");
  }

  bool checkPlacement() {
    if (microBatches == 0)
      return fail(lines.front(), lines.front().column,
                  "expected an action, got none");
    for (int32_t m = 0; m < microBatches; ++m)
      for (int32_t s = 0; s < stages; ++s)
        if (!placement.contains({m, s}))
          return failAboutMissing(m, s);
    for (const auto &[m, numbers] : parts)
      if (*numbers.rbegin() >= std::ssize(numbers))
        return fail(lines.front(), lines.front().column,
                    "expected all parts of the backwards of micro-batch " +
                        std::to_string(m) + " up to " +
                        std::to_string(*numbers.rbegin()) + ", got only " +
                        listOf(numbers));
    return true;
  }

  /// Micro-batches with the same placement are one pipeline. Pipelines get
  /// numbers in the order of their first micro-batches.
  std::vector<schedule::Pipeline> makePipelines() const {
    std::vector<schedule::Pipeline> pipelines;
    std::map<std::vector<int32_t>, size_t> numbers;
    for (int32_t m = 0; m < microBatches; ++m) {
      std::vector<int32_t> row;
      for (int32_t s = 0; s < stages; ++s)
        row.push_back(placement.at({m, s}));
      auto [number, isNew] = numbers.try_emplace(row, pipelines.size());
      if (isNew)
        pipelines.push_back({.up = row.front() > row.back(),
                             .workers = row,
                             .microBatches = {}});
      schedule::Pipeline &pipeline = pipelines[number->second];
      pipeline.microBatches.push_back(m);
      if (auto part = parts.find(m); part != parts.end())
        pipeline.backwardParts = std::max(
            pipeline.backwardParts, static_cast<int32_t>(part->second.size()));
    }
    return pipelines;
  }

  /// Sets `pipeline.forwards` if a forward has several micro-batches. They must
  /// be neighbors in this pipeline, and in no other forward.
  bool groupForwards(schedule::Pipeline &pipeline) {
    const std::vector<int32_t> &all = pipeline.microBatches;
    std::vector<int32_t> counts;
    for (size_t i = 0; i < all.size(); i += counts.back()) {
      auto forward = forwards.find(all[i]);
      if (forward == forwards.end()) {
        counts.push_back(1);
        continue;
      }
      const auto &[count, word] = forward->second;
      const int32_t last = all[i] + count - 1;
      if (i + count > all.size() || all[i + count - 1] != last)
        return fail(lines[word.worker], word.column,
                    "expected micro-batches with the same workers on all "
                    "stages in a forward, got " +
                        std::string(word.text));
      auto other = std::next(forward);
      if (other != forwards.end() && other->first <= last) {
        const Word &second = other->second.second;
        return fail(lines[second.worker], second.column,
                    "expected each micro-batch in the same forward on all "
                    "stages, got " +
                        std::string(second.text) + " and " +
                        std::string(word.text));
      }
      counts.push_back(count);
    }
    if (std::ranges::any_of(counts, [](int32_t count) { return count > 1; }))
      pipeline.forwards = std::move(counts);
    return true;
  }

  int32_t workers() const { return static_cast<int32_t>(lines.size()); }

  std::string_view path, text, shown, rest;
  std::string &error;
  std::vector<Line> lines; ///< by worker
  std::optional<bool> hasStages;
  int32_t stages = 0, microBatches = 0;
  std::map<Cell, int32_t> placement;
  std::map<int32_t, std::optional<Word>>
      onlyWords; ///< the word of a micro-batch; nothing if it has several
  std::map<int32_t, std::pair<int32_t, Word>>
      forwards; ///< number of micro-batches and a word, by the first
  std::map<int32_t, std::set<int32_t>>
      parts;                    ///< parts of backwards, by micro-batch
  std::set<int32_t> recomputed; ///< stages that are recomputed
};

/// The text of a module with one pipeline, which has the contents of `file`.
std::string describe(const OrderFile &file, std::string_view path) {
  std::string text = "chimera.pipeline @order stages(" +
                     std::to_string(file.stages) + ") micro_batches(" +
                     std::to_string(file.microBatches) + ")";
  if (file.lines.size() != static_cast<size_t>(file.stages))
    text += " workers(" + std::to_string(file.lines.size()) + ")";
  if (!file.recomputed.empty())
    text += " recompute(" + listOf(file.recomputed) + ")";
  text += " {\n";
  text += describeDirections(file.pipelines);
  for (size_t worker = 0; worker < file.lines.size(); ++worker) {
    const Line &line = file.lines[worker];
    // The column is one too small, because OrderOp::locationOf adds one for the
    // quote.
    text += "  chimera.order " + std::to_string(worker) + " \"" +
            std::string(line.text) + "\" loc(\"" + escaped(path) +
            "\":" + std::to_string(line.number) + ":" +
            std::to_string(line.column - 1) + ")\n";
  }
  return text + "}\n";
}

} // namespace

std::string
describeDirections(const std::vector<schedule::Pipeline> &pipelines) {
  std::string text;
  for (size_t i = 0; i < pipelines.size(); ++i) {
    const schedule::Pipeline &pipeline = pipelines[i];
    text += "  chimera.direction " + std::to_string(i) +
            (pipeline.up ? " up on " : " down on ") + listOf(pipeline.workers) +
            " micro_batches " + listOf(pipeline.microBatches);
    if (!pipeline.forwards.empty())
      text += " forwards " + listOf(pipeline.forwards);
    if (pipeline.backwardParts > 1)
      text += " backward_parts " + std::to_string(pipeline.backwardParts);
    text += "\n";
  }
  return text;
}

bool isOrderFile(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    skipBlanks(line);
    if (line.empty() || isComment(line))
      continue;
    if (takeWorker(line) || hasEquals(line))
      return true;
    std::string_view word = line.substr(0, line.find_first_of(", \t\r"));
    return isIdle(word) || namesActions(word);
  }
  return false;
}

std::optional<OrderFile> readOrderFile(std::string_view path,
                                       std::string_view text,
                                       std::string &error,
                                       std::string_view shown) {
  return Reader(path, text, shown, error).run();
}

std::optional<std::string> describeOrderFile(std::string_view path,
                                             std::string_view text,
                                             std::string &error,
                                             std::string_view shown) {
  const std::optional<OrderFile> file = readOrderFile(path, text, error, shown);
  return file ? std::optional(describe(*file, path)) : std::nullopt;
}

} // namespace chimera
