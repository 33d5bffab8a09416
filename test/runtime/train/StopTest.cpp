//===- StopTest.cpp - All ranks stop after the same step ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"
#include "runtime/stage/ExactStage.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "runtime/train/StopVote.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/StatusPage.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

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
        [&](uint32_t, uint64_t step) { return page.mayBeginStep(step); },
        seed % 4, 20, [&] { page.askToStop(); });
    EXPECT_EQ(steps, std::vector<uint64_t>(4, steps[0])) << "seed " << seed;
    EXPECT_GT(steps[0], 20u) << "the one that asks had begun it";
    EXPECT_LE(steps[0], 1000u);
  }
}

TEST(StatusPage, DoesNotStopWithoutARequest) {
  StatusPage page(2);
  for (uint64_t step : {1, 2, 3})
    EXPECT_TRUE(page.mayBeginStep(step));
  EXPECT_FALSE(page.askedToStop());
  page.askToStop();
  EXPECT_TRUE(page.askedToStop());
  EXPECT_TRUE(page.mayBeginStep(3)) << "somebody has begun it";
  EXPECT_FALSE(page.mayBeginStep(4));
}

TEST(StopVote, StopsAllRanksTwoStepsLater) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto controls = makeInProcessControls(4);
    std::atomic<bool> asked = false;
    std::vector<std::unique_ptr<StopVote>> votes;
    for (uint32_t rank = 0; rank < 4; ++rank)
      votes.push_back(std::make_unique<StopVote>(
          *controls[rank],
          // Only rank 2 got the request to stop.
          [&asked, rank] { return StopVote::Vote{rank == 2 && asked.load()}; },
          10s));
    std::vector<uint64_t> steps = stepsOf(
        4, seed,
        [&](uint32_t rank, uint64_t) { return votes[rank]->mayBeginStep(); }, 2,
        20, [&] { asked.store(true); });
    for (auto &vote : votes)
      vote->finish();
    EXPECT_EQ(steps, std::vector<uint64_t>(4, 23)) << "seed " << seed;
  }
}

TEST(StopVote, EndsTheVoteUnderWay) {
  auto controls = makeInProcessControls(2);
  StopVote first(
      *controls[0], [] { return StopVote::Vote{0}; }, 100ms);
  StopVote second(
      *controls[1], [] { return StopVote::Vote{1}; }, 100ms);
  EXPECT_TRUE(first.mayBeginStep());
  EXPECT_THROW(first.mayBeginStep(), WaitError) << "the other has not voted";
}

TEST(StopVote, TellsAllRanksWhatTheyUsedThreeStepsBefore) {
  auto controls = makeInProcessControls(3);
  uint64_t step = 0;
  std::vector<std::unique_ptr<StopVote>> votes;
  for (uint32_t rank = 0; rank < 3; ++rank)
    votes.push_back(std::make_unique<StopVote>(
        *controls[rank],
        [&step, rank] {
          return StopVote::Vote{0,
                                {.residentBytes = 100 * step + rank,
                                 .deviceBytes = rank == 1 ? step : 0,
                                 .waiting = 0.25 * rank,
                                 .measured = 1}};
        },
        10s));
  for (step = 1; step <= 5; ++step) {
    // Rank 0 last, since it waits for the votes of the others.
    for (uint32_t rank : {1, 2, 0})
      EXPECT_TRUE(votes[rank]->mayBeginStep());
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

/// Waits until `heard` is `expected`, but not for ever. Returns whether it is.
bool comesTrue(const std::atomic<int> &heard, int expected) {
  for (int i = 0; i < 10000 && heard.load() != expected; ++i)
    std::this_thread::sleep_for(10ms);
  return heard.load() == expected;
}

TEST(Signals, AreStoredForALaterListenerAndPassedToAPresentOne) {
  Signals::blockUserSignal();
  kill(getpid(), SIGUSR1);
  Signals signals;
  std::atomic<int> heard = 0;
  {
    SignalListener listening(&signals,
                             [&](int signal) { heard.store(signal); });
    EXPECT_TRUE(comesTrue(heard, SIGUSR1)) << "came before";
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(comesTrue(heard, SIGTERM));
  }
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(heard.load(), SIGTERM);
  SignalListener listening(&signals, [&](int signal) { heard.store(signal); });
  EXPECT_TRUE(comesTrue(heard, SIGUSR1));
}

TEST(Signals, EndTheProcessWhereNobodyListens) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals;
        kill(getpid(), SIGINT);
        sleep(1000);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(Signals, EndTheProcessWhereTheListenerFails) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals;
        SignalListener listening(&signals, [](int) { throw std::bad_alloc(); });
        kill(getpid(), SIGTERM);
        sleep(1000);
      },
      testing::ExitedWithCode(1),
      ": failed while handling a signal: std::bad_alloc");
}

/// Keeps the signals that a listener reports.
class ReceivedSignals {
public:
  void add(int signal) {
    std::lock_guard lock(mutex);
    signals.push_back(signal);
  }
  std::vector<int> get() {
    std::lock_guard lock(mutex);
    return signals;
  }
  bool becomes(const std::vector<int> &expected) {
    for (int i = 0; i < 500 && get() != expected; ++i)
      std::this_thread::sleep_for(10ms);
    return get() == expected;
  }

private:
  std::mutex mutex;
  std::vector<int> signals; // guarded by mutex
};

TEST(Signals, OfTheGraceTimeAskToStopAndThenEnd) {
  for (int signal : {SIGINT, SIGTERM}) {
    ReceivedSignals told, begun;
    Signals signals(Grace{60s, [&](int which) { begun.add(which); }});
    SignalListener listening(&signals, [&](int which) { told.add(which); });
    EXPECT_EQ(signals.stopSignal(), 0);
    kill(getpid(), signal);
    EXPECT_TRUE(told.becomes({SIGUSR1}));
    EXPECT_TRUE(begun.becomes({signal}));
    EXPECT_EQ(signals.stopSignal(), signal);
    // A launcher may send a signal to both the process and its process group.
    // The second signal, soon after the first, does not count.
    kill(getpid(), signal);
    kill(getpid(), SIGUSR1);
    EXPECT_TRUE(told.becomes({SIGUSR1, SIGUSR1}));
    EXPECT_EQ(signals.stopSignal(), signal);
    std::this_thread::sleep_for(Signals::kRepeatTime + 50ms);
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(told.becomes({SIGUSR1, SIGUSR1, SIGTERM}));
    EXPECT_EQ(begun.get(), std::vector<int>{signal});
  }
}

TEST(Signals, EndTheRunWhenTheGraceTimeIsOver) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals(Grace{200ms});
        const auto begin = std::chrono::steady_clock::now();
        SignalListener listening(&signals, [&](int signal) {
          if (signal != SIGUSR1)
            _exit(std::chrono::steady_clock::now() - begin < 200ms ? 1
                                                                   : signal);
        });
        kill(getpid(), SIGTERM);
        sleep(10);
      },
      testing::ExitedWithCode(SIGTERM), "");
}

TEST(Signals, EndTheProcessWhereNobodyListensInSpiteOfAGraceTime) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals(Grace{60s});
        kill(getpid(), SIGTERM);
        sleep(10);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Signals, AreStoppedByTheDestructor) {
  for (int i = 0; i < 100; ++i)
    Signals signals;
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
  Signals signals(Grace{60s});
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
