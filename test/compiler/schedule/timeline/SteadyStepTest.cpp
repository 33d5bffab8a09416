//===- SteadyStepTest.cpp - One step of many that overlap -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SteadyStep.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/SteadyState.h"

#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/timeline/ChromeTrace.h"
#include "compiler/schedule/timeline/Differences.h"
#include "compiler/schedule/timeline/Grid.h"
#include "compiler/schedule/timeline/SideBySide.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace chimera::schedule {
namespace {

using nlohmann::json;

/// A case without a flush, its steady step, and the compiler's trace of a run
/// of `steps` steps.
struct Endless {
  explicit Endless(Case of, int32_t steps = 0)
      : c(std::move(of)),
        timing(simulate(c.problem, c.schedule)), timeline{"p", "title",
                                                          c.problem, c.schedule,
                                                          timing},
        step(steadyStep(c.problem, c.schedule)) {
    timeline.scale = {findTimeUnit("us")};
    longer = c.problem;
    longer.steps = steps > 0 ? steps : steadyState(c.problem, c.schedule).steps;
    run = unrollSteps(c.problem, c.schedule, longer.steps);
    Timing ran = simulate(longer, run);
    SyncAndUpdate syncAndUpdate = syncAndUpdateOf(longer, run, ran);
    Occupations occupations = messageOccupationsOf(longer, run, ran);
    Timeline drawn{"p", "title", longer, run, ran};
    drawn.scale = timeline.scale;
    drawn.syncAndUpdate = &syncAndUpdate;
    drawn.occupations = &occupations;
    trace = json::parse(renderChromeTrace({&drawn, 1}));
  }
  Endless(const Endless &) = delete;

  NanosecondStep predicted() const {
    return *nanosecondStepOf(timelineOf(timeline, step), step.begins);
  }
  std::variant<MeasuredStep, std::string> read() const {
    return readMeasured(trace.dump(), c.problem, step.schedule);
  }
  MeasuredStep measured() const {
    auto result = read();
    if (const auto *error = std::get_if<std::string>(&result)) {
      ADD_FAILURE() << *error;
      return {};
    }
    return std::get<MeasuredStep>(std::move(result));
  }
  /// The error of reading `trace`. Empty if there is none.
  std::string error() const {
    auto result = read();
    const auto *error = std::get_if<std::string>(&result);
    return error ? *error : "";
  }
  /// The event with this name on `worker`.
  json &find(const std::string &name, int worker) {
    for (json &event : trace["traceEvents"])
      if (event["name"] == name && event["ph"] == "X" && event["tid"] == worker)
        return event;
    ADD_FAILURE() << name;
    return trace;
  }

  Case c;
  Timing timing;
  Timeline timeline;
  SteadyStep step;
  Problem longer;
  Schedule run;
  json trace;
};

/// Two workers run three micro-batches per step, with f = 1 and b = 2. P0
/// starts its body at time 2, when P1 has run the first forward of its own
/// body. P0's first backward waits for P1's first backward.
TEST(SteadyStep, IsTheBodyOfEachWorker) {
  Case c = makeCase("pipedream-2bw", 2, 3, {1, 2, 1, 1});
  SteadyStep step = steadyStep(c.problem, c.schedule);
  for (size_t w = 0; w < 2; ++w) {
    auto [begin, end] = c.schedule.bodies[w];
    EXPECT_TRUE(std::ranges::equal(
        step.schedule.workers[w],
        std::span(c.schedule.workers[w]).subspan(begin, end - begin)));
    EXPECT_EQ(step.syncAndUpdate.ends[w] - step.begins[w], 9);
  }
  Timing timing = simulate(c.problem, c.schedule);
  Timeline timeline{"p", "title", c.problem, c.schedule, timing};
  EXPECT_EQ(renderGrid(timelineOf(timeline, step)),
            "t    0  1  2  3  4  5  6  7  8  9  10\n"
            "P0   .  .  F1 B0 =  F2 B1 =  F3 B2 =\n"
            "P1   F0 B0 =  F1 B1 =  F2 B2 =  .  .\n");
  EXPECT_EQ(step.begins, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(step.timing.makespan, std::ranges::max(step.syncAndUpdate.ends));
}

/// If all steps take the same time, each worker's step takes this time. All
/// steps take the same time if the number of workers divides the number of
/// micro-batches.
TEST(SteadyStep, TakesThePeriod) {
  for (const char *scheme : {"pipedream", "pipedream-2bw"})
    for (int32_t workers : {1, 3, 4})
      for (int64_t send : {0, 2}) {
        Case c = makeCase(scheme, workers, 12, {10, 20, 1, 1, 1, 4});
        c.problem.link = {{3}, {send}, {send}};
        SteadyState steady = steadyState(c.problem, c.schedule);
        SteadyStep step = steadyStep(c.problem, c.schedule);
        for (size_t w = 0; w < step.begins.size(); ++w)
          EXPECT_EQ(
              static_cast<double>(step.syncAndUpdate.ends[w] - step.begins[w]),
              steady.period)
              << scheme << " " << workers << " " << send;
      }
}

/// Between the actions of a body there are updates, waits for all-reduces,
/// sends and receives. None of these overlaps with another one or with an
/// action.
TEST(SteadyStep, ShowsWhatIsAmongItsActions) {
  Case c = makeCase("pipedream", 2, 4, {10, 20, 1, 1, 1, 4});
  c.problem.width = 2;
  c.problem.link = {{3}, {1}, {2}};
  c.problem.allReduceMessage = MessageTime{5};
  c.problem.bytes.assign(2, {64, 0, 1, 1, 8});
  SteadyStep step = steadyStep(c.problem, c.schedule);
  for (size_t w = 0; w < 2; ++w) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    int64_t updates = 0, waits = 0;
    for (const SyncAndUpdate::Work &work : step.syncAndUpdate.work[w]) {
      spans.push_back({work.begin, work.end});
      ++(work.isUpdate() ? updates : waits);
    }
    EXPECT_EQ(updates, 4); // one after each backward
    EXPECT_EQ(waits, 4);
    for (const Occupation &one : step.occupations[w])
      spans.push_back({one.begin, one.end});
    for (size_t i = 0; i < step.timing.starts[w].size(); ++i) {
      int64_t start = step.timing.starts[w][i];
      spans.push_back(
          {start, start + c.problem.cost(step.schedule.workers[w][i])});
    }
    std::ranges::sort(spans);
    for (size_t i = 1; i < spans.size(); ++i)
      EXPECT_LE(spans[i - 1].second, spans[i].first);
    EXPECT_GE(spans.front().first, step.begins[w]);
    EXPECT_EQ(spans.back().second, step.syncAndUpdate.ends[w]);
  }
}

/// Reads the compiler's own trace as if it were measured. The result must equal
/// the prediction.
TEST(MeasuredBody, ReadsWhatTheCompilerDraws) {
  for (const char *scheme : {"pipedream", "pipedream-2bw"})
    for (int32_t workers : {1, 2, 4})
      for (bool split : {false, true})
        for (int64_t update : {0, 4}) {
          SCOPED_TRACE(std::string(scheme) + " " + std::to_string(workers));
          Case c =
              makeCase(scheme, workers, 5, {10, 24, 12, 12, 1, update}, split);
          c.problem.link = {{3}, {1}, {2}};
          Endless endless(std::move(c));
          MeasuredStep run = endless.measured();
          NanosecondStep predicted = endless.predicted();
          EXPECT_EQ(run.timing.starts, predicted.timing.starts);
          EXPECT_EQ(run.begins, predicted.begins);
          EXPECT_EQ(run.syncAndUpdate.ends, predicted.syncAndUpdate.ends);
          EXPECT_EQ(run.length(), predicted.length());
          for (size_t w = 0; w < predicted.begins.size(); ++w) {
            EXPECT_EQ(run.busy(w), predicted.busy(w));
            EXPECT_EQ(run.idle(w), predicted.idle(w));
          }
          for (const DifferenceKind &kind : differenceKinds())
            EXPECT_TRUE(largestDifferences(kind, predicted, run, 9).empty())
                << kind.name;
        }
}

Case smallEndless() {
  Case c = makeCase("pipedream-2bw", 2, 3, {10, 20, 1, 1, 1, 4});
  c.problem.link = {{3}};
  return c;
}

/// The run has six steps, from step 11. The last body begins in its fifth step
/// (15). The sixth step only drains the pipeline, so its times do not matter.
TEST(MeasuredBody, HasTheStepNumber) {
  Endless endless(smallEndless(), 6);
  endless.find("backward 17", 1)["dur"] = 500;
  endless.trace["otherData"]["first_step"] = 11;
  MeasuredStep run = endless.measured();
  EXPECT_EQ(run.step, 15);
  EXPECT_EQ(run.steps, 2);
  Timeline timeline = timelineOf(endless.timeline, endless.step);
  EXPECT_EQ(SideBySide(timeline, endless.predicted(), run).nameOfRun(),
            "the body that each worker repeats, in steps 15 and 16");
  EXPECT_EQ(run.length(), endless.predicted().length());
  run.step.reset();
  EXPECT_EQ(SideBySide(timeline, endless.predicted(), run).nameOfRun(),
            "the body that each worker repeats");
  // With one worker, the body has no micro-batch of the next step.
  Endless alone(makeCase("pipedream", 1, 3), 6);
  alone.trace["otherData"]["first_step"] = 1;
  run = alone.measured();
  EXPECT_EQ(run.steps, 1);
  Timeline one = timelineOf(alone.timeline, alone.step);
  EXPECT_EQ(SideBySide(one, alone.predicted(), run).nameOfRun(),
            "the body that each worker repeats, in step 5");
}

/// An update between two actions is read as an update, not as a wait, and is
/// busy time.
TEST(MeasuredBody, HasUpdatesAmongItsActions) {
  Endless endless(makeCase("pipedream", 2, 3, {10, 20, 1, 1, 1, 4}), 8);
  NanosecondStep predicted = endless.predicted();
  // In P0's last body, make the update after the first backward longer by 2 us.
  const std::vector<Action> &body = endless.step.schedule.workers[0];
  size_t first =
      std::ranges::find(body, Kind::Backward, &Action::kind) - body.begin();
  double end = endless.find(
      "backward " + std::to_string(body[first].microBatch + 6 * 3), 0)["ts"];
  for (json &event : endless.trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == 0 &&
        event["ts"].get<double>() > end) {
      if (event["cat"] == "update" && event["ts"].get<double>() == end + 20)
        event["dur"] = 6;
      else
        event["ts"] = event["ts"].get<double>() + 2;
    }
  MeasuredStep run = endless.measured();
  EXPECT_EQ(run.busy(0), predicted.busy(0) + 2000);
  Timeline timeline = timelineOf(endless.timeline, endless.step);
  SideBySide both(timeline, predicted, run);
  std::string text = renderTextSideBySide(both);
  EXPECT_NE(text.find("P0 takes 2 us longer, its updates included, before "),
            std::string::npos)
      << text;
}

/// A message has an arrow only if the actions at both of its ends are in the
/// body.
TEST(MeasuredBody, IsATraceWithWholeArrows) {
  Endless endless(smallEndless());
  Timeline timeline = timelineOf(endless.timeline, endless.step);
  SideBySide both(timeline, endless.predicted(), endless.measured());
  json document = json::parse(renderChromeTraceSideBySide(both));
  std::map<int64_t, std::string> phases;
  for (const json &event : document["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f")
      phases[event["id"]] += event["ph"].get<std::string>();
  EXPECT_FALSE(phases.empty());
  for (const auto &[id, ends] : phases)
    EXPECT_TRUE(ends == "sf" || ends == "fs") << id << " " << ends;
}

/// The step starts at the end of the previous body. So a trace with only one
/// body is refused.
TEST(MeasuredBodyError, FewerBodies) {
  EXPECT_EQ(Endless(smallEndless(), 3).error(), "");
  EXPECT_EQ(Endless(smallEndless(), 2).error(),
            "expected micro-batches of 3 steps or more, as a run of 3 steps "
            "has with --trace-steps 2, got those of 2");
}

TEST(MeasuredBodyError, NothingBefore) {
  Endless endless(smallEndless(), 3);
  json &events = endless.trace["traceEvents"];
  // Remove the events before P1's last body, which starts with micro-batch 3.
  for (json &event : events)
    if (event["ph"] == "X" && event["tid"] == 1 && event.contains("args") &&
        event["args"]["micro_batch"] < 3)
      event["cat"] = "other";
  EXPECT_EQ(endless.error(), "expected actions of P1 before those that are "
                             "compared, got none");
}

TEST(MeasuredBodyError, ActionIsMissing) {
  Endless endless(smallEndless(), 3);
  endless.find("backward 4", 0)["cat"] = "other";
  EXPECT_EQ(endless.error(), "expected backward of stage 0, micro-batch 1 on "
                             "P0, got none");
  Endless second(smallEndless(), 3);
  second.find("forward 6", 0)["cat"] = "other";
  EXPECT_EQ(second.error(), "expected forward of stage 0, micro-batch 0 of "
                            "the second step on P0, got none");
}

TEST(MeasuredBodyError, ActionIsThereTwice) {
  Endless endless(smallEndless(), 3);
  json twice = endless.find("forward 5", 0);
  endless.trace["traceEvents"].push_back(twice);
  EXPECT_EQ(endless.error(), "expected forward of stage 0, micro-batch 2 "
                             "once, got it twice");
}

TEST(MeasuredBodyError, ActionIsOnAnotherWorker) {
  Endless endless(smallEndless(), 3);
  endless.find("forward 5", 0)["tid"] = 1;
  EXPECT_EQ(endless.error(), "expected forward of stage 0, micro-batch 2 on "
                             "P0, got it on P1");
}

TEST(MeasuredBodyError, OtherOrder) {
  Endless endless(smallEndless(), 3);
  std::swap(endless.find("forward 5", 0)["ts"],
            endless.find("backward 4", 0)["ts"]);
  EXPECT_NE(endless.error().find("got another order"), std::string::npos)
      << endless.error();
}

/// The trace has an action of another step between the actions of the last
/// body.
TEST(MeasuredBodyError, ActionOfAnotherBodyIsInside) {
  Endless endless(smallEndless(), 3);
  double inside = endless.find("backward 4", 0)["ts"];
  endless.find("backward 8", 0)["ts"] = inside + 1;
  EXPECT_EQ(endless.error(),
            "expected no action of another step within the step of P0, got "
            "backward of stage 0, micro-batch 2");
}

} // namespace
} // namespace chimera::schedule
