//===- MeasuredTest.cpp - Measured steps ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Measured.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/ChromeTrace.h"
#include "compiler/schedule/timeline/Differences.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace chimera::schedule {
namespace {

using nlohmann::json;

/// A case, its simulated timeline, and the trace that the compiler writes of
/// it.
struct Drawn {
  explicit Drawn(Case of, const char *unit = "us", int64_t perUnit = 1)
      : c(std::move(of)), timing(simulate(c.problem, c.schedule)),
        syncAndUpdate(syncAndUpdateOf(c.problem, c.schedule, timing)),
        timeline{"p", "title", c.problem, c.schedule, timing} {
    timeline.scale = {findTimeUnit(unit), perUnit};
    timeline.syncAndUpdate = &syncAndUpdate;
  }
  Drawn(const Drawn &) = delete;

  std::string trace() const { return renderChromeTrace({&timeline, 1}); }
  std::variant<MeasuredStep, std::string>
  read(const std::string &text, std::optional<int64_t> copy = {}) const {
    return readMeasured(text, c.problem, c.schedule, copy);
  }
  std::variant<MeasuredStep, std::string>
  read(const json &document, std::optional<int64_t> copy = {}) const {
    return read(document.dump(), copy);
  }
  /// The error of reading `document` as a measured trace. Empty if there is
  /// none.
  std::string errorOf(const json &document,
                      std::optional<int64_t> copy = {}) const {
    auto result = read(document, copy);
    const auto *error = std::get_if<std::string>(&result);
    return error ? *error : "";
  }

  Case c;
  Timing timing;
  SyncAndUpdate syncAndUpdate;
  Timeline timeline;
};

Case smallStep() {
  Case c = makeCase("1f1b", 2, 2, {10, 20, 1, 1, 1, 5});
  c.problem.link = {{3}};
  return c;
}

json &find(json &document, const std::string &name) {
  for (json &event : document["traceEvents"])
    if (event["name"] == name && event["ph"] == "X")
      return event;
  ADD_FAILURE() << name;
  return document;
}

/// Reads the compiler's own trace as if it were measured. The result must equal
/// the prediction.
void expectSame(const Drawn &drawn) {
  SCOPED_TRACE(nameOf(*drawn.c.scheme, drawn.c.problem.workers,
                      drawn.c.problem.microBatches(), drawn.c.choice));
  auto read = drawn.read(drawn.trace());
  ASSERT_FALSE(std::holds_alternative<std::string>(read))
      << std::get<std::string>(read);
  const auto &run = std::get<MeasuredStep>(read);
  std::optional<NanosecondStep> predicted = nanosecondStepOf(drawn.timeline);
  ASSERT_TRUE(predicted);
  EXPECT_EQ(run.timing.starts, predicted->timing.starts);
  EXPECT_EQ(run.timing.ends, predicted->timing.ends);
  EXPECT_EQ(run.syncAndUpdate.ends, predicted->syncAndUpdate.ends);
  EXPECT_EQ(run.end(), predicted->end());
  for (const DifferenceKind &kind : differenceKinds())
    EXPECT_TRUE(largestDifferences(kind, *predicted, run, 9).empty())
        << kind.name;
  for (size_t w = 0; w < run.syncAndUpdate.work.size(); ++w) {
    ASSERT_EQ(run.syncAndUpdate.work[w].size(),
              predicted->syncAndUpdate.work[w].size());
    for (size_t i = 0; i < run.syncAndUpdate.work[w].size(); ++i) {
      const SyncAndUpdate::Work &a = run.syncAndUpdate.work[w][i],
                                &b = predicted->syncAndUpdate.work[w][i];
      EXPECT_EQ(std::pair(a.begin, a.end), std::pair(b.begin, b.end));
      EXPECT_EQ(a.stage, b.stage);
      EXPECT_EQ(a.isUpdate(), b.isUpdate());
    }
  }
}

TEST(Measured, ReadsWhatTheCompilerDraws) {
  for (const Scheme &scheme : schemes()) {
    if (!canPlan(scheme, 4, 8))
      continue;
    for (const Choice &choice : choices(scheme, 4))
      for (bool split : {false, true}) {
        if (!canPlan(scheme, 4, 8, choice))
          continue;
        Case c =
            makeCase(scheme.name, 4, 8, {12, 24, 12, 12, 8, 5}, split, choice);
        if (stepsOverlap(c.problem.updates))
          continue;
        c.problem.link = {{3}};
        c.problem.width = 2;
        expectSame(Drawn(c));
      }
  }
  Case c = makeCase("1f1b", 3, 4, {10, 20, 1, 1, 7});
  c.problem.recompute.assign(3, Recompute::Early);
  c.schedule = insertRecompute(c.problem, c.schedule);
  expectSame(Drawn(c));
}

TEST(Measured, CountsNanosecondsOfAnyUnit) {
  for (const TimeUnit &unit : timeUnits())
    if (unit.isDuration)
      expectSame(Drawn(smallStep(), unit.name));
  expectSame(Drawn(smallStep(), "us", 8));
  Drawn drawn(smallStep(), "ms", 2);
  auto read = drawn.read(drawn.trace());
  EXPECT_EQ(std::get<MeasuredStep>(read).timing.ends[0][0], 5'000'000);
}

/// The time of a step begins with its first action, whatever comes before the
/// action and whatever the clock shows then.
TEST(Measured, BeginsWithTheFirstAction) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  for (json &event : document["traceEvents"])
    if (event["ph"] == "X")
      event["ts"] = event["ts"].get<double>() + 1e9;
  json load = find(document, "forward 0");
  load.erase("args");
  load["cat"] = "other";
  load["name"] = "load input 0";
  load["ts"] = 5;
  document["traceEvents"].push_back(load);
  load["ts"] = 1e9 + 21;
  load["name"] = "post the receive of gradient 0";
  document["traceEvents"].push_back(load);
  auto read = drawn.read(document);
  const auto &run = std::get<MeasuredStep>(read);
  EXPECT_EQ(run.timing.starts, nanosecondStepOf(drawn.timeline)->timing.starts);
  ASSERT_EQ(run.others[0].size(), 1u);
  EXPECT_EQ(run.others[0][0].begin, 21000);
  EXPECT_EQ(run.others[0][0].name, "post the receive of gradient 0");
  EXPECT_FALSE(run.step);
}

/// A trace of a run says how many threads and cores a rank had.
TEST(Measured, KnowsWhetherRanksSharedCores) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  auto sharedCores = [&] {
    return std::get<MeasuredStep>(drawn.read(document)).sharedCores;
  };
  EXPECT_FALSE(sharedCores());
  document["otherData"]["threads"] = 1;
  EXPECT_FALSE(sharedCores());
  document["otherData"]["cores_per_rank"] = 0.5;
  EXPECT_TRUE(sharedCores());
  document["otherData"]["cores_per_rank"] = 1;
  EXPECT_FALSE(sharedCores());
}

/// The first of the two steps takes other times. Its events are ignored,
/// updates and posts too.
TEST(Measured, TakesTheLastStep) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  document["otherData"]["first_step"] = 7;
  std::vector<json> later;
  for (json &event : document["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    later.push_back(event);
    json &last = later.back();
    last["ts"] = last["ts"].get<double>() + 1000;
    if (event.contains("args")) {
      event["args"]["step"] = 0;
      event["dur"] = 1;
      last["args"]["step"] = 1;
      last["args"]["micro_batch"] = last["args"]["micro_batch"].get<int>() + 2;
    }
  }
  for (const json &event : later)
    document["traceEvents"].push_back(event);
  auto read = drawn.read(document);
  ASSERT_FALSE(std::holds_alternative<std::string>(read))
      << std::get<std::string>(read);
  const auto &run = std::get<MeasuredStep>(read);
  EXPECT_EQ(run.timing.starts, nanosecondStepOf(drawn.timeline)->timing.starts);
  EXPECT_EQ(run.end(), nanosecondStepOf(drawn.timeline)->end());
  EXPECT_EQ(run.step, 8);
}

TEST(Measured, TakesTheSlowestCopyOrTheOneThatIsAskedFor) {
  Case c = smallStep();
  c.problem.width = 3;
  Drawn drawn(c);
  json document = json::parse(drawn.trace()), all = document;
  for (int copy : {1, 2})
    for (json event : document["traceEvents"]) {
      event["pid"] = copy;
      if (event["ph"] == "X" && event["name"] == "update of stage 0")
        event["dur"] = event["dur"].get<double>() + (copy == 1 ? 50 : 20);
      all["traceEvents"].push_back(event);
    }
  auto slowest = std::get<MeasuredStep>(drawn.read(all));
  EXPECT_EQ(slowest.copy, 1);
  EXPECT_EQ(slowest.copies, 3);
  EXPECT_TRUE(slowest.isSlowest);
  EXPECT_EQ(slowest.end(), nanosecondStepOf(drawn.timeline)->end() + 50'000);
  auto third = std::get<MeasuredStep>(drawn.read(all, 2));
  EXPECT_EQ(third.copy, 2);
  EXPECT_FALSE(third.isSlowest);
  EXPECT_EQ(third.end(), nanosecondStepOf(drawn.timeline)->end() + 20'000);
  EXPECT_EQ(drawn.errorOf(all, 3), "expected copy 0 to 2, got 3");
  EXPECT_EQ(drawn.errorOf(all, -1), "expected copy 0 to 2, got -1");
  // If one copy has an error, the message names the copy.
  find(all, "forward 0")["args"]["stage"] = 1;
  EXPECT_EQ(drawn.errorOf(all),
            "copy 0: expected forward of stage 1, micro-batch 0 on P1, got "
            "it on P0");
}

TEST(MeasuredError, NotJson) {
  Drawn drawn(smallStep());
  auto read = drawn.read(std::string("PNG"));
  EXPECT_NE(std::get<std::string>(read).find("expected JSON, got a parse error "
                                             "at line 1"),
            std::string::npos);
  // An error message quotes only the beginning of a long word.
  read = drawn.read("\"" + std::string(100000, 'x'));
  EXPECT_LT(std::get<std::string>(read).size(), 300u);
  for (const char *text : {"", "{", "{\"traceEvents\":[{\"ts\":NaN}]}",
                           "{\"traceEvents\":[{\"ts\":1e999}]}", "\xff"})
    EXPECT_NE(
        std::get<std::string>(drawn.read(std::string(text))).find("expected "),
        std::string::npos)
        << text;
}

TEST(MeasuredError, NoTrace) {
  Drawn drawn(smallStep());
  for (const char *text :
       {"3", "[]", "{}", "{\"traceEvents\":{}}", "[{\"traceEvents\":[]}]",
        "{\"x\":{\"traceEvents\":[]}}"})
    EXPECT_EQ(std::get<std::string>(drawn.read(std::string(text))),
              "expected a trace, got no array traceEvents in a JSON object")
        << text;
}

TEST(MeasuredError, NoActions) {
  Drawn drawn(smallStep());
  for (const char *text :
       {"{\"traceEvents\":[]}", "{\"traceEvents\":[3,null,[[{}]],{\"ph\":1}]}"})
    EXPECT_EQ(std::get<std::string>(drawn.read(std::string(text))),
              "expected actions of this pipeline, got none")
        << text;
}

TEST(MeasuredError, DeepNesting) {
  Drawn drawn(smallStep());
  constexpr size_t kDepth = 1'000'000;
  auto read = drawn.read("{\"traceEvents\":" + std::string(kDepth, '[') +
                         std::string(kDepth, ']') + "}");
  EXPECT_EQ(std::get<std::string>(read),
            "expected actions of this pipeline, got none");
}

TEST(MeasuredError, Numbers) {
  Drawn drawn(smallStep());
  const json document = json::parse(drawn.trace());
  for (const char *member : {"ts", "dur", "pid", "tid"})
    for (const json &value :
         {json("1"), json(), json(true), json::array({1}), json::object(),
          json(-1), json(1e300), json(1.5e13)}) {
      json changed = document;
      find(changed, "forward 0")[member] = value;
      // A process may have any number, even -1.
      if (std::string(member) == "pid" && value == -1)
        continue;
      EXPECT_NE(drawn.errorOf(changed).find("expected "), std::string::npos)
          << member << " " << value;
    }
  json changed = document;
  find(changed, "forward 0").erase("dur");
  EXPECT_EQ(drawn.errorOf(changed),
            "event \"forward 0\": expected numbers for ts, dur, pid and tid, "
            "and times from 0 to 100 days");
}

TEST(MeasuredError, Arguments) {
  Drawn drawn(smallStep());
  const json document = json::parse(drawn.trace());
  for (const char *member : {"pipeline", "stage", "micro_batch", "step",
                             "micro_batches", "part", "parts"})
    for (const json &value :
         {json(-1), json(INT64_MAX), json(INT64_MIN), json(3'000'000'000)}) {
      json changed = document;
      find(changed, "forward 0")["args"][member] = value;
      EXPECT_NE(drawn.errorOf(changed).find("expected "), std::string::npos)
          << member << " " << value;
    }
  json changed = document;
  find(changed, "forward 0")["args"]["stage"] = "0";
  EXPECT_EQ(drawn.errorOf(changed),
            "event \"forward 0\": expected whole numbers for the arguments "
            "pipeline, stage and micro_batch");
  find(changed, "forward 0")["args"] = 3;
  EXPECT_NE(drawn.errorOf(changed).find("for the arguments"),
            std::string::npos);
  // An error message quotes only the beginning of a long name.
  find(changed, "forward 0")["name"] = std::string(100000, 'x');
  EXPECT_LT(drawn.errorOf(changed).size(), 300u);
}

/// Makes the trace of `ran`, and reads it as a trace of 1f1b with 2 workers and
/// 2 micro-batches. Returns the error.
std::string errorOfOther(Case ran) {
  return Drawn(smallStep()).errorOf(json::parse(Drawn(std::move(ran)).trace()));
}

TEST(MeasuredError, OtherWorkers) {
  EXPECT_EQ(errorOfOther(makeCase("1f1b", 3, 2)),
            "expected worker 0 to 1, got 2 for \"forward 0\"");
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  find(document, "forward 0")["tid"] = 2;
  EXPECT_EQ(drawn.errorOf(document),
            "expected worker 0 to 1, got 2 for \"forward 0\"");
}

TEST(MeasuredError, OtherStages) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  find(document, "forward 0")["args"]["stage"] = 2;
  EXPECT_EQ(drawn.errorOf(document),
            "expected stage 0 to 1, got 2 for \"forward 0\"");
}

TEST(MeasuredError, OtherPipelines) {
  EXPECT_EQ(errorOfOther(makeCase("chimera", 2, 2)),
            "expected pipeline 0, got 1 for \"forward 1\"");
}

TEST(MeasuredError, OtherMicroBatches) {
  EXPECT_EQ(errorOfOther(makeCase("1f1b", 2, 3)),
            "expected micro_batch 0 to 1, got 2 for \"forward 2\"");
  EXPECT_EQ(errorOfOther(makeCase("1f1b", 2, 1)),
            "expected forward of stage 0, micro-batch 1 on P0, got none");
}

TEST(MeasuredError, OtherActions) {
  EXPECT_EQ(errorOfOther(makeCase("1f1b", 2, 2, {10, 20, 10, 10}, true)),
            "expected an action of this pipeline, got \"input_gradient 0\" of "
            "pipeline 0, stage 0");
  Case c = makeCase("1f1b", 2, 2);
  c.problem.recompute.assign(2, Recompute::Early);
  Drawn without(c);
  c.schedule = insertRecompute(c.problem, c.schedule);
  EXPECT_EQ(without.errorOf(json::parse(Drawn(c).trace())),
            "expected no recompute of stage 0, micro-batch 0, got it on P0");
}

TEST(MeasuredError, OtherOrder) {
  EXPECT_EQ(errorOfOther(makeCase("gpipe", 2, 2)),
            "expected backward of stage 1, micro-batch 0 before forward of "
            "stage 1, micro-batch 1 on P1, got another order");
}

TEST(MeasuredError, ActionIsThereTwice) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  document["traceEvents"].push_back(find(document, "forward 1"));
  EXPECT_EQ(drawn.errorOf(document), "expected forward of stage 0, "
                                     "micro-batch 1 once, got it twice");
}

TEST(MeasuredError, ActionIsMissing) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  find(document, "backward 1")["cat"] = "other";
  EXPECT_EQ(drawn.errorOf(document), "expected backward of stage 0, "
                                     "micro-batch 1 on P0, got none");
}

TEST(MeasuredError, MoreCopies) {
  Case c = smallStep();
  c.problem.width = 3;
  Drawn drawn(c);
  json document = json::parse(drawn.trace()), all = document;
  auto addCopy = [&](int copy) {
    for (json event : document["traceEvents"]) {
      event["pid"] = copy;
      all["traceEvents"].push_back(event);
    }
  };
  addCopy(1);
  EXPECT_EQ(drawn.errorOf(all),
            "expected one process for each of 3 copies, got 2");
  addCopy(2);
  addCopy(3);
  EXPECT_EQ(drawn.errorOf(all),
            "expected one process for each of 3 copies, got more");
}

TEST(MeasuredError, OtherUpdates) {
  Drawn drawn(smallStep());
  json document = json::parse(drawn.trace());
  find(document, "update of stage 0")["name"] = "update of stage 1";
  EXPECT_EQ(drawn.errorOf(document), "expected an update of a stage that P0 "
                                     "has, got \"update of stage 1\"");
}

/// Any text is either read or refused, without a crash: here, traces that were
/// cut or changed at many places.
TEST(Measured, TakesAnyBytes) {
  Drawn drawn(smallStep());
  const std::string text = drawn.trace();
  for (size_t i = 0; i < text.size(); i += 7) {
    drawn.read(text.substr(0, i));
    for (char byte : {'\0', '"', '9', '}', '[', '-', '\xc3'}) {
      std::string changed = text;
      changed[i] = byte;
      drawn.read(changed);
    }
  }
}

} // namespace
} // namespace chimera::schedule
