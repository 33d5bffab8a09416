//===- TraceTest.cpp - Traces of runs -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Trace.h"

#include "runtime/interpreter/TraceFormat.h"
#include "runtime/model/ExactStage.h"
#include "runtime/model/SyntheticStage.h"
#include "runtime/train/Run.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace chimera;
using namespace chimera::runtime;
using nlohmann::json;

namespace {
std::vector<uint64_t> sectionsOf(const Trace &trace) {
  std::vector<uint64_t> numbers;
  for (const Trace::Section &section : trace.kept())
    numbers.push_back(section.number);
  return numbers;
}

TEST(Trace, KeepsTheLastSteps) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  Trace trace(program, *program.workers[0], /*steps=*/2);
  for (uint64_t step = 1; step <= 5; ++step)
    for (uint32_t i = 0; i < 3; ++i)
      trace.add(step,
                {i, int64_t(100 * step + i), int64_t(100 * step + i + 1)});
  EXPECT_EQ(sectionsOf(trace), (std::vector<uint64_t>{4, 5}));
  ASSERT_EQ(trace.kept()[0].spans.size(), 3u);
  EXPECT_EQ(trace.kept()[0].spans[2].instruction, 2u);
  EXPECT_EQ(trace.kept()[0].spans[2].begin, 402);
  EXPECT_EQ(trace.kept()[1].spans[0].begin, 500);
}

TEST(Trace, TakesNoMemoryOnceItIsFull) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  Trace trace(program, *program.workers[0], /*steps=*/2);
  const auto size =
      static_cast<uint32_t>(program.workers[0]->instructions.size());
  std::vector<const void *> memory;
  for (uint64_t step = 1; step <= 6; ++step) {
    for (uint32_t i = 0; i < size; ++i)
      trace.add(step, {i, 0, 1});
    memory.push_back(trace.kept().back().spans.data());
  }
  EXPECT_EQ(memory[2], memory[0]);
  EXPECT_EQ(memory[3], memory[1]);
  EXPECT_EQ(memory[5], memory[1]);
}

TEST(Trace, IsUnpackedAsItWasPackedAndIsShifted) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  Trace trace(program, *program.workers[0], /*steps=*/2);
  trace.add(7, {3, 10, 20});
  trace.add(8, {4, 30, 50});
  Trace other = Trace::unpack(trace.pack());
  EXPECT_EQ(other.pack(), trace.pack());
  other.shift(-5);
  EXPECT_EQ(other.kept()[1].spans[0].begin, 25);
  EXPECT_EQ(other.kept()[1].spans[0].end, 45);
}

/// Runs a program from step `first` (from 0) for three steps. Returns the trace
/// of the last `steps` steps.
std::string documentOf(const program::ProgramT &program, uint64_t steps,
                       const StageFactory &stages = makeExactStage,
                       uint64_t first = 0, const EarlierTrace &earlier = {}) {
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = stages, .data = data};
  run.firstStep = first;
  run.steps = first + 3;
  run.traceSteps = steps;
  std::string document;
  run.onResult = [&](const RunResult &result) {
    // All ranks are threads and have the same clock, so there is no clock
    // error.
    EXPECT_FALSE(result.clockError);
    document = formatTrace(program, result.traces, result.clockError,
                           {.stages = "exact",
                            .device = "host",
                            .threads = 2,
                            .coresPerRank = 1.5},
                           earlier);
  };
  runInProcess(run);
  return document;
}

json traceOf(const program::ProgramT &program, uint64_t steps,
             const StageFactory &stages = makeExactStage) {
  return json::parse(documentOf(program, steps, stages));
}

/// The events with a duration, by data-parallel copy and worker, in the order
/// of the file.
std::map<std::pair<int, int>, std::vector<json>> spansOf(const json &trace) {
  std::map<std::pair<int, int>, std::vector<json>> spans;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X")
      spans[{event["pid"], event["tid"]}].push_back(event);
  return spans;
}

uint64_t countOf(const json &trace, const char *category) {
  uint64_t count = 0;
  for (const json &event : trace["traceEvents"])
    count += event.value("cat", "") == category;
  return count;
}

TEST(Trace, HasAnEventForEachActionOfTheLastStep) {
  program::ProgramT program = program::samplePipeline(
      {.workers = 2, .bidirectional = true, .splitBackward = true});
  constexpr double kUnit = 200'000;
  json trace = traceOf(program, 1, makeSyntheticStages(kUnit));
  EXPECT_EQ(trace["otherData"]["first_step"], 3);
  EXPECT_EQ(trace["otherData"]["steps"], 1);
  EXPECT_EQ(trace["otherData"]["threads"], 2);
  EXPECT_EQ(trace["otherData"]["cores_per_rank"], 1.5);
  EXPECT_EQ(countOf(trace, "forward"), 16u);
  EXPECT_EQ(countOf(trace, "input_gradient"), 16u);
  EXPECT_EQ(countOf(trace, "weight_gradient"), 16u);
  EXPECT_EQ(countOf(trace, "update"), 4u);
  // Each worker waits for the all-reduces of both its stages. The two workers
  // with a loss also wait for the all-reduce of the losses.
  EXPECT_EQ(countOf(trace, "wait"), 6u);
  // 8 activations and 8 gradients are sent, and both ends of each message have
  // a wait.
  EXPECT_EQ(countOf(trace, "message wait"), 32u);
  EXPECT_EQ(countOf(trace, "message"), 32u);
  for (const auto &[place, spans] : spansOf(trace)) {
    double end = 0;
    for (const json &span : spans) {
      EXPECT_GE(span["ts"].get<double>(), end - 1e-6) << span;
      end = span["ts"].get<double>() + span["dur"].get<double>();
      if (!span.contains("args") || !span["args"].contains("kind"))
        continue;
      const json &arguments = span["args"];
      EXPECT_EQ(arguments["worker"], place.second);
      const program::Stage &cost = program.stages[arguments["stage"]];
      const int64_t units = arguments["kind"] == "forward" ? cost.forward()
                            : arguments["kind"] == "input_gradient"
                                ? cost.input_gradient()
                                : cost.weight_gradient();
      EXPECT_GE(span["dur"].get<double>(), double(units) * kUnit / 1000);
    }
  }
}

TEST(Trace, ArrowsGoForwardInTime) {
  for (const program::SampleOptions &options :
       {program::SampleOptions{.workers = 4},
        {.workers = 2, .microBatches = 4, .doubledForwards = true},
        {.workers = 2, .backwardParts = 2},
        {.workers = 2, .stages = 4},
        {.workers = 2,
        .recompute = program::SampleOptions::Recompute::All,
        .dataParallel = 2}}) {
    program::ProgramT program = program::samplePipeline(options);
    json trace = traceOf(program, 1);
    std::map<int, json> starts;
    uint64_t ends = 0, sends = 0;
    for (const auto &worker : program.workers)
      for (const program::Instruction &instruction : worker->instructions)
        sends += instruction.opcode() == program::Opcode::PostSend;
    for (const json &event : trace["traceEvents"])
      if (event["ph"] == "s") {
        EXPECT_TRUE(starts.emplace(event["id"], event).second);
      } else if (event["ph"] == "f") {
        const json &start = starts.at(event["id"]);
        EXPECT_EQ(start["pid"], event["pid"]);
        EXPECT_NE(start["tid"], event["tid"]);
        EXPECT_LT(start["ts"].get<double>(), event["ts"].get<double>());
        ++ends;
      }
    EXPECT_EQ(ends, sends * program.data_parallel);
    EXPECT_EQ(starts.size(), ends);
  }
}

TEST(Trace, NumbersMicroBatchesThroughItsSteps) {
  program::ProgramT program =
      program::samplePipeline({.workers = 2, .microBatches = 4});
  json trace = traceOf(program, 2);
  EXPECT_EQ(trace["otherData"]["first_step"], 2);
  EXPECT_EQ(trace["otherData"]["steps"], 2);
  std::map<int, int> forwards; // by step
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == "forward") {
      EXPECT_EQ(event["args"]["step"],
                event["args"]["micro_batch"].get<int>() / 4);
      ++forwards[event["args"]["step"]];
    }
  EXPECT_EQ(forwards, (std::map<int, int>{{0, 8}, {1, 8}}));
  // If more steps are requested than the run has, the trace has all steps of
  // the run.
  EXPECT_EQ(traceOf(program, 1000)["otherData"]["steps"], 3);
}

TEST(Trace, WithoutAFlushHasTheStepInWhichTheLastOneBegan) {
  program::ProgramT program = program::sampleAsynchronous(
      {.workers = 3, .microBatches = 4}, program::Updates::EachStep);
  json trace = traceOf(program, 1);
  EXPECT_EQ(trace["otherData"]["first_step"], 2);
  EXPECT_EQ(trace["otherData"]["steps"], 2);
  // The trace has all actions of the last step.
  std::map<std::pair<int, int>, int> count;
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == "forward" ||
        event.value("cat", "") == "backward")
      ++count[{event["args"]["stage"],
               event["args"]["micro_batch"].get<int>()}];
  for (int stage = 0; stage < int(program.stages.size()); ++stage)
    for (uint32_t m = 0; m < program.micro_batches; ++m)
      EXPECT_EQ((count[{stage, int(program.micro_batches + m)}]), 2)
          << stage << " " << m;
}

/// The events of one process.
json eventsOf(const json &trace, int process) {
  json events = json::array();
  for (const json &event : trace["traceEvents"])
    if (event["pid"] == process)
      events.push_back(event);
  return events;
}

TEST(Trace, ContinuesTheTraceOfEarlierRuns) {
  program::ProgramT program =
      program::samplePipeline({.workers = 2, .dataParallel = 2});
  const std::string before = documentOf(program, 1);
  const json first = json::parse(before);
  EXPECT_FALSE(first["otherData"].contains("first_process"));
  const EarlierTrace earlier = parseEarlierTrace(before, 3);
  ASSERT_EQ(earlier.runs.size(), 1u);
  EXPECT_EQ(earlier.processes, 2u);
  EXPECT_GT(earlier.end, 0);

  // Another program continues.
  const std::string after = documentOf(program::samplePipeline({.workers = 3}),
                                       2, makeExactStage, 3, earlier);
  const json both = json::parse(after);
  const json &other = both["otherData"];
  EXPECT_EQ(other["first_step"], 5);
  EXPECT_EQ(other["steps"], 2);
  EXPECT_EQ(other["first_process"], 2);
  EXPECT_EQ(other["earlier"],
            json::parse(R"([{"first_step":3,"steps":1,"first_process":0}])"));
  for (int process : {0, 1})
    EXPECT_EQ(eventsOf(both, process), eventsOf(first, process));
  EXPECT_GT(eventsOf(both, 2).size(), eventsOf(both, 1).size());
  std::set<int> starts;
  for (const json &event : both["traceEvents"]) {
    EXPECT_LE(event["pid"], 2);
    if (event["ph"] == "s") {
      EXPECT_TRUE(starts.insert(event["id"].get<int>()).second) << event;
    }
    if (event["pid"] == 2 && event.contains("ts")) {
      EXPECT_GE(event["ts"].get<double>(), earlier.end);
    }
  }

  const EarlierTrace all = parseEarlierTrace(after, 6);
  EXPECT_EQ(all.runs.size(), 2u);
  EXPECT_EQ(all.processes, 3u);
  EXPECT_EQ(all.arrows, starts.size());
  EXPECT_GT(all.end, earlier.end);
  // A checkpoint after step 5 is older than the last run's trace.
  const EarlierTrace cut = parseEarlierTrace(after, 5);
  EXPECT_EQ(cut.runs.size(), 1u);
  EXPECT_EQ(cut.events, earlier.events);
  EXPECT_EQ(cut.processes, 2u);
  EXPECT_EQ(cut.arrows, earlier.arrows);
  const EarlierTrace none = parseEarlierTrace(after, 2);
  EXPECT_TRUE(none.runs.empty());
  EXPECT_EQ(none.events, "");
  EXPECT_EQ(none.processes, 0u);
}

TEST(Trace, OfAResumedRunWithoutAFlushHasItsFirstStep) {
  program::ProgramT program = program::sampleAsynchronous(
      {.workers = 3, .microBatches = 4}, program::Updates::EachStep);
  json trace = json::parse(documentOf(program, 10, makeExactStage, 20));
  EXPECT_EQ(trace["otherData"]["first_step"], 21);
  EXPECT_EQ(trace["otherData"]["steps"], 3);
  std::map<std::pair<int, int>, int> count;
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == "forward" ||
        event.value("cat", "") == "backward")
      ++count[{event["args"]["stage"],
               event["args"]["micro_batch"].get<int>()}];
  for (int stage = 0; stage < int(program.stages.size()); ++stage)
    for (uint32_t m = 0; m < 3 * program.micro_batches; ++m)
      EXPECT_EQ((count[{stage, int(m)}]), 2) << stage << " " << m;
}

TEST(Trace, ContinuesOnlyATraceOfARun) {
  const std::string good =
      documentOf(program::samplePipeline({.workers = 2}), 1);
  const size_t events = good.find("[\n") + 2;
  auto expectError = [](const std::string &text, const std::string &expected) {
    try {
      parseEarlierTrace(text, 3);
      ADD_FAILURE() << "expected an error for " << text.substr(0, 200);
    } catch (const std::runtime_error &error) {
      EXPECT_EQ(error.what(),
                "expected a trace that chimera-run wrote: " + expected);
    }
  };
  expectError("", "its second line is not otherData");
  expectError("{}\n\"otherData\":[]", "otherData has no first_step and steps");
  expectError(
      "{}\n\"otherData\":{\"first_step\":1,\"steps\":1,\"earlier\":7},\n",
      "otherData has no first_step and steps");
  expectError("{}\n\"otherData\":{\"first_step\":1,\"steps\":1,\"earlier\":"
              "[{\"first_step\":1,\"steps\":1,\"first_process\":3}]},\n",
              "the runs in its otherData are not in order");
  expectError("{}\n\"otherData\":{\"first_step\":1,\"steps\":1},\n[",
              "its third line is not the begin of traceEvents");
  expectError(good.substr(0, events) + "7,\n" + good.substr(events),
              "expected one event in each line, got 7");
  expectError(good.substr(0, good.size() - 2),
              "expected one event in each line, got ]");
  for (size_t size : {good.size() - 4, events})
    expectError(good.substr(0, size), "its end is missing");
}
} // namespace
