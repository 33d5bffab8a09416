//===- OrderText.cpp - Orders of actions as text --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/OrderText.h"

#include <algorithm>
#include <charconv>

namespace chimera::schedule {

OrderText::OrderText(int32_t workers, const std::vector<Pipeline> &pipelines,
                     Updates updates)
    : pipelines(pipelines), overlaps(stepsOverlap(updates)), replicas(workers) {
  size_t all = 0;
  for (const Pipeline &pipeline : pipelines)
    all += pipeline.microBatches.size();
  covers.resize(all);
  for (size_t p = 0; p < pipelines.size(); ++p) {
    const Pipeline &pipeline = pipelines[p];
    auto index = static_cast<int32_t>(p);
    for (int32_t microBatch : pipeline.microBatches)
      covers[microBatch] = {index, pipeline.forwards.empty() ? 1 : 0};
    size_t first = 0;
    for (int32_t count : pipeline.forwards) {
      covers[pipeline.microBatches[first]].count = count;
      first += count;
    }
    for (size_t s = 0; s < pipeline.workers.size(); ++s)
      replicas[pipeline.workers[s]].emplace_back(index,
                                                 static_cast<int32_t>(s));
  }
}

std::span<const OrderText::Replica>
OrderText::replicasOn(int32_t worker, int32_t pipeline) const {
  auto range =
      std::ranges::equal_range(replicas[worker], pipeline, {}, &Replica::first);
  return {range.begin(), range.end()};
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Reads one line, word by word.
class LineReader {
public:
  LineReader(const OrderText &order, int32_t worker, std::string_view text,
             OrderLine &line)
      : order(order), worker(worker), text(text), line(line),
        microBatches(static_cast<int32_t>(order.covers.size())) {}

  std::optional<TextError> run() {
    while (!error) {
      while (at < text.size() && (text[at] == ' ' || text[at] == '\t'))
        ++at;
      if (at == text.size())
        break;
      word = at;
      readWord();
      if (!error && at < text.size() && text[at] != ' ' && text[at] != '\t')
        refuseWord();
    }
    if (!error && order.overlaps && section != 2)
      fail(text.size(), "expected a prologue, a step and an epilogue, with | "
                        "between them, as steps overlap");
    return error;
  }

private:
  void fail(size_t offset, std::string message) {
    if (!error)
      error = TextError{offset, std::move(message)};
  }
  void refuseWord(
      const char *expected =
          "a word such as F0, B0, I0, W0, R0, 2F0 (stage 2), F0-1 "
          "(a range), B0.1 (a part), F1+B0 (a pair), W0+W1 (joined), .3 (idle "
          "slots) or |") {
    constexpr size_t kMost = 40; // a word may be as long as the line
    size_t end =
        std::min({text.find_first_of(" \t", word), text.size(), word + kMost});
    const std::string got(text.substr(word, end - word));
    fail(word, std::string("expected ") + expected + ", got " + got +
                   (got.find(',') == got.npos
                        ? ""
                        : ": blanks separate words, write no commas"));
  }
  char next() const { return at < text.size() ? text[at] : ' '; }

  bool take(char c) {
    if (next() != c)
      return false;
    ++at;
    return true;
  }

  int32_t number() {
    int32_t value = 0;
    auto [end, code] =
        std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (!isDigit(next()))
      refuseWord();
    else if (code != std::errc())
      refuseWord("numbers below 2^31");
    else
      at = end - text.data();
    return value;
  }

  void readWord() {
    if (take('|'))
      return nextSection();
    if (take('.')) {
      if (order.overlaps)
        return fail(word, "expected no idle slots if steps overlap");
      slot += isDigit(next()) ? number() : 1;
      if (slot > INT32_MAX)
        fail(word, "expected less than 2^31 slots");
      line.hasSlots = true;
      return;
    }
    readAction();
    while (!error && take('+'))
      readJoined();
  }

  /// Reads an action that is joined with the last one.
  void readJoined() {
    const Kind kind = line.actions.back().kind;
    if (kind != Kind::Forward && kind != Kind::WeightGradient)
      return fail(word, "expected a forward or a weight gradient before +, "
                        "such as F1+B0 or W0+W1");
    line.actions.back().joinedWithNext = true;
    word = at;
    readAction();
    if (error)
      return;
    const Kind next = line.actions.back().kind;
    if (kind == Kind::Forward && !makesGradient(next))
      fail(word, "expected a backward or an input gradient after +, such as "
                 "F1+B0");
    if (kind == Kind::WeightGradient && next != Kind::WeightGradient)
      fail(word, "expected a weight gradient after +, such as W0+W1");
  }

  void readAction() {
    std::optional<int32_t> stage;
    if (isDigit(next()))
      stage = number();
    std::optional<Kind> kind = kindOf(next());
    if (!kind)
      return refuseWord();
    ++at;
    Action action{*kind, 0, 0, number()};
    std::optional<int32_t> last, part;
    if (take('-'))
      last = number();
    else if (take('.'))
      part = number();
    // Compute the count before findReplica(), which changes the micro-batch
    // numbers of the epilogue.
    std::optional<int64_t> count;
    if (last)
      count = int64_t{*last} - action.microBatch + 1;
    if (error || !findReplica(action, stage) || !setRange(action, count, part))
      return;
    line.actions.push_back(action);
    line.wordStarts.push_back(static_cast<uint32_t>(word));
    line.slots.push_back(slot++);
  }

  void nextSection() {
    auto here = static_cast<int32_t>(line.actions.size());
    if (!order.overlaps)
      return fail(word, "expected no |, as a flush ends the step");
    if (section == 2)
      return fail(word, "expected at most two |, got a third");
    if (section++ == 0)
      line.body = Schedule::Body{here, here};
    else
      line.body->end = here;
  }

  /// Finds the pipeline and stage of an action.
  bool findReplica(Action &action, std::optional<int32_t> stage) {
    int32_t below =
        order.overlaps && section < 2 ? 2 * microBatches : microBatches;
    if (action.microBatch >= below) {
      fail(word, "expected a micro-batch below " + std::to_string(below) +
                     ", got " + std::to_string(action.microBatch));
      return false;
    }
    action.pipeline = order.covers[action.microBatch % microBatches].pipeline;
    if (section == 2)
      action.microBatch += microBatches;
    std::span<const OrderText::Replica> held =
        order.replicasOn(worker, action.pipeline);
    if (stage ? std::ranges::none_of(held,
                                     [&](const OrderText::Replica &replica) {
                                       return replica.second == *stage;
                                     })
              : held.size() != 1) {
      std::string stages;
      for (const OrderText::Replica &replica :
           held.first(std::min<size_t>(held.size(), 8)))
        stages += (stages.empty() ? "" : ", ") + std::to_string(replica.second);
      if (held.size() > 8)
        stages += ", …";
      std::string what = std::string(1, rowOf(action.kind).letter) +
                         std::to_string(action.microBatch % microBatches);
      fail(word,
           held.empty() ? "expected no " + what + " on worker " +
                              std::to_string(worker) + ", which has no stage" +
                              ofPipeline(action.pipeline)
           : stage ? "expected a stage that worker " + std::to_string(worker) +
                         " has" + ofPipeline(action.pipeline) + " (" + stages +
                         "), got " + std::to_string(*stage)
                   : "expected a stage before " + what + ", one of " + stages +
                         ", because worker " + std::to_string(worker) +
                         " has several" + ofPipeline(action.pipeline));
      return false;
    }
    action.stage = stage ? *stage : held.front().second;
    return true;
  }

  /// " of pipeline 1", or nothing if there is only one pipeline.
  std::string ofPipeline(int32_t pipeline) const {
    return order.pipelines.size() > 1
               ? " of pipeline " + std::to_string(pipeline)
               : "";
  }

  /// Sets the micro-batches of a forward, or the part of another action.
  bool setRange(Action &action, std::optional<int64_t> given,
                std::optional<int32_t> part) {
    int32_t own = action.microBatch % microBatches;
    std::string name = rowOf(action.kind).letter + std::to_string(own);
    if (action.kind == Kind::Forward) {
      int32_t count = order.covers[own].count;
      if (given.value_or(1) == count && !part) {
        action.microBatches = static_cast<uint16_t>(count);
        return true;
      }
      fail(word, count == 0 ? "expected no forward that begins with "
                              "micro-batch " +
                                  std::to_string(own) +
                                  ", which another forward of the "
                                  "direction covers"
                 : count == 1 ? "expected " + name +
                                    ", because each forward of the "
                                    "direction has one micro-batch"
                              : "expected " + name + "-" +
                                    std::to_string(own + count - 1) +
                                    ", because this forward of the direction "
                                    "has these micro-batches");
      return false;
    }
    int32_t parts = order.pipelines[action.pipeline].backwardParts;
    if (!given && part.has_value() == (parts > 1) && part.value_or(0) < parts) {
      action.part = static_cast<uint8_t>(part.value_or(0));
      action.parts = static_cast<uint8_t>(parts);
      return true;
    }
    fail(word, parts == 1 ? "expected " + name +
                                ", because each backward of the "
                                "direction has one part"
                          : "expected " + name + ".0 to " + name + "." +
                                std::to_string(parts - 1) +
                                ", because each backward of the direction "
                                "has these parts");
    return false;
  }

  const OrderText &order;
  int32_t worker;
  std::string_view text;
  OrderLine &line;
  int32_t microBatches; ///< of a step
  size_t at = 0, word = 0;
  int64_t slot = 0;
  int section = 0;
  std::optional<TextError> error;
};

std::optional<TextError> OrderText::read(int32_t worker, std::string_view text,
                                         OrderLine &line) const {
  return LineReader(*this, worker, text, line).run();
}

std::string OrderText::write(const Schedule &schedule, int32_t worker,
                             bool namesAllStages) const {
  const std::vector<Action> &actions = schedule.workers[worker];
  auto microBatches = static_cast<int32_t>(covers.size());
  std::vector<bool> namesStage(pipelines.size());
  for (size_t p = 0; p < pipelines.size(); ++p)
    namesStage[p] = namesAllStages ||
                    replicasOn(worker, static_cast<int32_t>(p)).size() > 1;
  std::string text;
  text.reserve(6 * actions.size());
  auto add = [&](int64_t number) {
    char digits[20];
    char *end = std::to_chars(digits, std::end(digits), number).ptr;
    text.append(digits, end);
  };
  auto separate = [&] {
    if (!text.empty())
      text += ' ';
  };
  // If no slot is idle, .0 shows that the line has slots.
  if (schedule.hasSlots() && !actions.empty() &&
      schedule.slots[worker].back() == std::ssize(actions) - 1)
    text += ".0";
  int64_t slot = 0;
  for (size_t i = 0; i <= actions.size(); ++i) {
    auto here = static_cast<int32_t>(i);
    if (overlaps)
      for (int32_t bar :
           {schedule.bodies[worker].begin, schedule.bodies[worker].end})
        if (bar == here) {
          separate();
          text += '|';
        }
    if (i == actions.size())
      break;
    if (i > 0 && actions[i - 1].joinedWithNext)
      text += '+';
    else
      separate();
    if (schedule.hasSlots()) {
      if (int64_t idle = schedule.slots[worker][i] - slot; idle > 0) {
        text += '.';
        if (idle > 1)
          add(idle);
        text += ' ';
      }
      slot = schedule.slots[worker][i] + 1;
    }
    const Action &action = actions[i];
    if (namesStage[action.pipeline])
      add(action.stage);
    text += rowOf(action.kind).letter;
    bool isOfEpilogue = overlaps && here >= schedule.bodies[worker].end;
    int32_t microBatch = action.microBatch - (isOfEpilogue ? microBatches : 0);
    add(microBatch);
    if (action.microBatches > 1) {
      text += '-';
      add(microBatch + action.microBatches - 1);
    }
    if (action.parts > 1) {
      text += '.';
      add(action.part);
    }
  }
  return text;
}

Splits splitsOf(const Schedule &schedule, int32_t stages,
                int32_t microBatches) {
  auto isHalf = [](const Action &action) {
    return action.kind == Kind::InputGradient ||
           action.kind == Kind::WeightGradient;
  };
  bool anyHalf = false, anyWhole = false;
  for (const std::vector<Action> &worker : schedule.workers)
    for (const Action &action : worker) {
      anyHalf |= isHalf(action);
      anyWhole |= action.kind == Kind::Backward;
    }
  if (!anyHalf || !anyWhole)
    return anyHalf;
  Splits splits(stages, microBatches);
  for (const std::vector<Action> &worker : schedule.workers)
    for (const Action &action : worker)
      if (isHalf(action))
        splits.setSplit(action.stage, action.microBatch);
  return splits;
}

} // namespace chimera::schedule
