//===- StopTest.cpp - All ranks stop or save after the same step ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"
#include "runtime/model/ExactStage.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "runtime/train/StepVote.h"
#include "runtime/watch/StatusPage.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Starts `ranks` threads, which take steps as long as mayBeginStep(rank, step)
/// returns true. The threads pause at random. In step `when`, the thread
/// `asking` calls `ask`. Returns the number of steps of each thread.
template <typename MayBeginStep>
std::vector<uint64_t> stepsOf(uint32_t ranks, unsigned seed,
                              MayBeginStep mayBeginStep, uint32_t asking,
                              uint64_t when, const std::function<void()> &ask) {
  std::vector<uint64_t> steps(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::mt19937 random(seed * 100 + rank);
      uint64_t step = 0;
      do {
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
        if (rank == asking && step == when)
          ask();
        ++step;
      } while (step < 1000 && mayBeginStep(rank, step));
      steps[rank] = step;
    });
  for (std::thread &thread : threads)
    thread.join();
  return steps;
}

TEST(StatusPage, StopsAllRanksAfterAStepThatOneHadBegun) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    StatusPage page(4);
    std::vector<uint64_t> steps = stepsOf(
        4, seed,
        [&](uint32_t, uint64_t step) {
          return page.decide(step) == StepDecision::Begin;
        },
        seed % 4, 20, [&] { page.askToStop(); });
    EXPECT_EQ(steps, std::vector<uint64_t>(4, steps[0])) << "seed " << seed;
    EXPECT_GT(steps[0], 20u) << "the one that asks had begun it";
    EXPECT_LE(steps[0], 1000u);
  }
}

TEST(StatusPage, DoesNotStopWithoutARequest) {
  StatusPage page(2);
  for (uint64_t step : {1, 2, 3})
    EXPECT_EQ(page.decide(step), StepDecision::Begin);
  EXPECT_FALSE(page.askedToStop());
  page.askToStop();
  EXPECT_TRUE(page.askedToStop());
  EXPECT_EQ(page.decide(3), StepDecision::Begin) << "somebody has begun it";
  EXPECT_EQ(page.decide(4), StepDecision::Stop);
}

TEST(StatusPage, SavesOnceForSeveralRequests) {
  StatusPage page(2);
  EXPECT_EQ(page.decide(1), StepDecision::Begin);
  page.askToSave();
  page.askToSave();
  EXPECT_EQ(page.decide(1), StepDecision::Begin) << "somebody has begun it";
  EXPECT_EQ(page.decide(2), StepDecision::Save);
  EXPECT_EQ(page.decide(3), StepDecision::Begin);
  // The other rank comes later, after another request.
  page.askToSave();
  EXPECT_EQ(page.decide(2), StepDecision::Save);
  EXPECT_EQ(page.decide(3), StepDecision::Begin);
  EXPECT_EQ(page.decide(4), StepDecision::Save);
  page.askToSave();
  page.askToStop();
  EXPECT_EQ(page.decide(5), StepDecision::Stop) << "that writes one as well";
  EXPECT_TRUE(page.claimNotice());
  EXPECT_FALSE(page.claimNotice());
}

/// Lets `ranks` threads take 200 steps, at most two steps apart, and asks for
/// checkpoints at random. Returns the steps before which each rank saves.
std::vector<std::vector<uint64_t>> savesOf(uint32_t ranks, unsigned seed) {
  StatusPage page(ranks);
  std::vector<std::atomic<uint64_t>> at(ranks);
  std::vector<std::vector<uint64_t>> saves(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::mt19937 random(seed * 100 + rank);
      for (uint64_t step = 1; step < 200; ++step) {
        while (std::ranges::any_of(
            at, [&](const auto &other) { return other.load() + 2 < step; }))
          std::this_thread::yield();
        if (random() % 8 == 0)
          page.askToSave();
        if (page.decide(step) == StepDecision::Save)
          saves[rank].push_back(step);
        at[rank].store(step);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return saves;
}

TEST(StatusPage, SavesBeforeTheSameStepsOnAllRanks) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<std::vector<uint64_t>> saves = savesOf(4, seed);
    EXPECT_GT(saves[0].size(), 10u);
    for (const std::vector<uint64_t> &each : saves)
      EXPECT_EQ(each, saves[0]) << "seed " << seed;
  }
}

TEST(StatusPage, LetsARankWithoutInstructionsFollow) {
  StatusPage page(3);
  std::vector<StepDecision> heard;
  std::thread idle([&] {
    for (uint64_t step = 1; step < 5; ++step)
      heard.push_back(page.decideAfterOthers(2, step));
    EXPECT_THROW(page.decideAfterOthers(2, 5), std::runtime_error);
  });
  EXPECT_EQ(page.decide(1), StepDecision::Begin);
  page.askToSave();
  EXPECT_EQ(page.decide(2), StepDecision::Save);
  EXPECT_EQ(page.decide(3), StepDecision::Begin);
  EXPECT_EQ(page.decide(4), StepDecision::Begin);
  page.of(0).fail("for this test");
  idle.join();
  EXPECT_EQ(heard, (std::vector{StepDecision::Begin, StepDecision::Save,
                                StepDecision::Begin, StepDecision::Begin}));
  page.askToStop();
  EXPECT_EQ(page.decideAfterOthers(2, 5), StepDecision::Stop);
}

TEST(StepVote, StopsAllRanksTwoStepsLater) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto controls = makeInProcessControls(4);
    std::atomic<bool> asked = false;
    std::vector<std::unique_ptr<StepVote>> votes;
    for (uint32_t rank = 0; rank < 4; ++rank)
      votes.push_back(std::make_unique<StepVote>(
          *controls[rank],
          // Only rank 2 got the request to stop.
          [&asked, rank] { return rank == 2 && asked.load(); },
          [] { return StepUse(); }, 100s));
    std::vector<uint64_t> steps = stepsOf(
        4, seed,
        [&](uint32_t rank, uint64_t) {
          return votes[rank]->decide() == StepDecision::Begin;
        },
        2, 20, [&] { asked.store(true); });
    for (auto &vote : votes)
      vote->finish();
    EXPECT_EQ(steps, std::vector<uint64_t>(4, 23)) << "seed " << seed;
  }
}

TEST(StepVote, SavesTwoStepsLaterAndOnceForSeveralRequests) {
  auto controls = makeInProcessControls(4);
  std::vector<std::vector<uint64_t>> saves(4);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      StepVote vote(
          *controls[rank], [] { return false; }, [] { return StepUse(); },
          100s);
      for (uint64_t step = 1; step < 40; ++step) {
        // Rank 2 is asked before step 10, and rank 1 two steps later. This is
        // before the checkpoint. Rank 3 is asked after it, and after the
        // checkpoint before step 30, which nobody has asked for.
        if ((rank == 2 && step == 10) || (rank == 1 && step == 12) ||
            (rank == 3 && (step == 20 || step == 29)))
          vote.askToSave();
        if (vote.decide() == StepDecision::Save) {
          vote.finish();
          saves[rank].push_back(step);
        }
        if (step == 30)
          vote.finish();
      }
      vote.finish();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<uint64_t> &each : saves)
    EXPECT_EQ(each, (std::vector<uint64_t>{12, 22}));
}

TEST(StepVote, EndsTheVoteUnderWay) {
  auto controls = makeInProcessControls(2);
  StepVote first(
      *controls[0], [] { return false; }, [] { return StepUse(); }, 100ms);
  StepVote second(
      *controls[1], [] { return true; }, [] { return StepUse(); }, 100ms);
  EXPECT_EQ(first.decide(), StepDecision::Begin);
  EXPECT_THROW(first.decide(), WaitError) << "the other has not voted";
}

TEST(StepVote, TellsAllRanksWhatTheyUsedThreeStepsBefore) {
  auto controls = makeInProcessControls(3);
  uint64_t step = 0;
  std::vector<std::unique_ptr<StepVote>> votes;
  for (uint32_t rank = 0; rank < 3; ++rank)
    votes.push_back(std::make_unique<StepVote>(
        *controls[rank], [] { return false; },
        [&step, rank] {
          return StepUse{.residentBytes = 100 * step + rank,
                         .deviceBytes = rank == 1 ? step : 0,
                         .waiting = 0.25 * rank,
                         .measured = 1};
        },
        100s));
  for (step = 1; step <= 5; ++step) {
    // Rank 0 last, since it waits for the votes of the others.
    for (uint32_t rank : {1, 2, 0})
      EXPECT_EQ(votes[rank]->decide(), StepDecision::Begin);
    // The next step is step + 1.
    for (const auto &vote : votes) {
      EXPECT_EQ(vote->use().residentBytes, step < 3 ? 0 : 100 * (step - 2) + 2);
      EXPECT_EQ(vote->use().deviceBytes, step < 3 ? 0 : step - 2);
      EXPECT_EQ(vote->use().measured, step < 3 ? 0u : 3u);
      EXPECT_EQ(vote->use().waiting, step < 3 ? 0 : 0.25);
    }
  }
  for (uint32_t rank : {1, 2, 0})
    votes[rank]->finish();
}

/// The result of a run of `steps` steps that gets a signal in step `when`: the
/// weights, the gradients and the number of steps.
RunResult resultWithSignal(const program::ProgramT &program, uint64_t steps,
                           Signals *signals, uint64_t when,
                           int signal = SIGUSR1) {
  SyntheticData data(1);
  RunResult found;
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = steps;
  run.gatherWeights = run.gatherGradients = true;
  run.signals = signals;
  run.onStep = [&](const StepEvent &event) {
    if (event.step != when)
      return;
    kill(getpid(), signal);
    std::this_thread::sleep_for(100ms);
  };
  std::atomic<int> ranksStopped = 0;
  run.onStopped = [&](int by) { ranksStopped += by == signal; };
  run.onResult = [&](const RunResult &result) { found = result; };
  runInProcess(run);
  const bool isTold = signal != SIGUSR1 && when < steps;
  EXPECT_EQ(ranksStopped.load(), isTold ? program::rankCount(program) : 0);
  return found;
}

TEST(Run, StopsWithTheResultsOfTheStepsItHad) {
  Signals signals;
  for (bool flush : {true, false}) {
    program::ProgramT program =
        flush ? program::samplePipeline({.bidirectional = true})
              : program::sampleAsynchronous({}, program::Updates::EachStep);
    RunResult stopped = resultWithSignal(program, 100000, &signals, 5);
    EXPECT_EQ(stopped.stoppedBy, SIGUSR1);
    EXPECT_TRUE(stopped.endedRegularly());
    EXPECT_GE(stopped.steps, 6u);
    EXPECT_LT(stopped.steps, 100000u);
    RunResult whole =
        resultWithSignal(program, stopped.steps, nullptr, UINT64_MAX);
    EXPECT_EQ(stopped.steps, whole.steps);
    EXPECT_EQ(stopped.weights, whole.weights);
    EXPECT_EQ(stopped.gradients, whole.gradients);
  }
}

TEST(Run, HasTheWeightsOfTheStepInWhichAGraceTimeBegan) {
  Signals signals(Grace{1h});
  const program::ProgramT program =
      program::samplePipeline({.bidirectional = true});
  const RunResult stopped =
      resultWithSignal(program, 100000, &signals, 5, SIGTERM);
  EXPECT_EQ(stopped.stoppedBy, SIGTERM);
  EXPECT_FALSE(stopped.endedRegularly());
  EXPECT_GE(stopped.steps, 6u);
  EXPECT_LT(stopped.steps, 100000u);
  EXPECT_EQ(stopped.weightsAfter,
            std::vector<uint64_t>(program.stages.size(), stopped.steps));
  EXPECT_EQ(
      stopped.weights,
      resultWithSignal(program, stopped.steps, nullptr, UINT64_MAX).weights);
  // The earlier signal must not stop the next run.
  EXPECT_TRUE(
      resultWithSignal(program, 3, &signals, UINT64_MAX).endedRegularly());
}
} // namespace
