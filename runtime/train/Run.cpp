//===- Run.cpp - A training run, from first step to result ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Run.h"

#include "runtime/program/File.h"
#include "runtime/train/Gather.h"
#include "runtime/train/SignsOfLife.h"
#include "runtime/train/StopVote.h"
#include "runtime/transport/Deadline.h"
#include "runtime/transport/InProcess.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"
#include "runtime/watch/Standstill.h"
#include "runtime/watch/Watchdog.h"
#include "runtime/watch/Watcher.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

uint32_t chimera::runtime::rootOf(const program::ProgramT &program) {
  uint32_t root = UINT32_MAX;
  for (const auto &communicator : program.communicators)
    if (communicator->kind == program::ValueKind::Loss)
      for (const program::Contribution &summand : communicator->contributions)
        root = std::min(root, summand.worker());
  return root == UINT32_MAX ? 0 : root;
}

void chimera::runtime::checkStages(const TrainingRun &run) {
  for (uint32_t stage = 0; stage < run.program.stages.size(); ++stage)
    run.stages(run.program, stage);
}

namespace {
/// The values that all ranks of `run` must have in common.
std::vector<Shared> sharedOf(const TrainingRun &run) {
  std::vector<Shared> shared = {
      {"program", program::checksum(program::serialize(run.program))}};
  // These come before the others, which follow from them, because their names
  // are those of options.
  std::ranges::copy(run.shared, std::back_inserter(shared));
  shared.insert(shared.end(),
                {{"number of steps", run.steps},
                 {"--check-replicas", run.checkReplicas},
                 // From it the root knows how often it must send a sign of
                 // life.
                 {"--timeout", static_cast<uint64_t>(run.timeout.count())},
                 {"wish for weights", run.gatherWeights},
                 {"wish for gradients", run.gatherGradients},
                 {"wish for a profile", run.profile}});
  return shared;
}

using Fail = std::function<void(const std::string &)>;

/// Runs one rank from start to end. Calls `prepare`, if there is one, before
/// the first all-reduce, and `mayBegin` before each step but the first. Calls
/// `fail` with the reason, from any thread, where the run fails and this thread
/// cannot say so.
void runRank(const TrainingRun &run, std::span<const ReduceGroup> groups,
             Transport &transport, Status &status,
             const std::function<void()> &prepare,
             const std::function<bool(uint64_t)> &mayBegin, const Fail &fail) {
  if (run.onThread)
    run.onThread();
  uint32_t root = rootOf(run.program);
  bool isRoot = transport.rank() == root;
  Interpreter::Options options;
  options.timeout = run.timeout;
  options.keepGradients = run.gatherGradients;
  options.mayBegin = mayBegin;
  options.meter = run.meter;
  Profile profile;
  if (run.profile)
    options.profile = &profile;
  Interpreter interpreter(run.program, groups, run.stages, run.data, transport,
                          status, options);

  meet(run.program, transport, run.timeout, "all ranks to start");
  if (prepare)
    prepare();
  int64_t begin = steadyNanoseconds();
  auto seconds = [&] {
    return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
  };
  interpreter.run(run.steps, [&](uint64_t step, std::optional<Loss> loss) {
    if (isRoot && run.onStep)
      run.onStep({step, loss, seconds()});
  });
  status.enter(Status::Finishing);
  meet(run.program, transport, run.timeout, "all ranks to end their last step");

  std::optional<SignsOfLife> signs;
  if (isRoot)
    signs.emplace(transport, run.timeout);
  auto sign = [&] {
    if (signs)
      signs->sendIfDue();
  };
  RunResult result;
  result.seconds = seconds();
  result.steps = interpreter.stepsRun();
  result.ranks = gatherValues(
      transport, root,
      RankUse{interpreter.instructionsRun(), interpreter.arenaBytes(),
              interpreter.peakStashBytes(), interpreter.peakBytes()},
      run.timeout);
  sign();
  if (run.profile)
    result.profiles = gatherProfiles(transport, root, profile, run.timeout);
  sign();
  if (run.checkReplicas)
    checkReplicas(run.program, transport, root, interpreter.weights(),
                  run.timeout);
  sign();
  if (run.gatherWeights)
    result.weights = gatherStages(run.program, transport, root,
                                  interpreter.weights(), run.timeout, sign);
  if (run.gatherGradients)
    result.gradients = gatherStages(run.program, transport, root,
                                    interpreter.gradients(), run.timeout, sign);
  if (!isRoot) {
    awaitLastSign(transport, root, run.timeout);
  } else {
    status.enter(Status::Saving);
    if (run.onResult)
      signs->during(
          [&] {
            if (run.onThread)
              run.onThread();
            run.onResult(result);
          },
          fail);
    signs->sendLast();
  }
  status.enter(Status::Done);
}

/// Says, at the lowest of `hostRanks`, which of them are not watched.
void tellOfTheUnwatched(uint32_t self, const std::vector<uint32_t> &hostRanks,
                        const std::vector<uint32_t> &watched) {
  std::string names;
  for (uint32_t rank : hostRanks)
    if (!std::ranges::binary_search(watched, rank))
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
  if (self == hostRanks.front() && !names.empty())
    writeReport("cannot watch these ranks of the host of rank " +
                std::to_string(self) + ": " + names +
                " (are they in containers of their own?): a report will not "
                "cover them\n");
}

/// The first failure among the threads of a run.
struct Failure {
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t running = 0;
  std::string report;
};
} // namespace

void chimera::runtime::runInProcess(const TrainingRun &run) {
  uint32_t ranks = program::rankCount(run.program);
  if (ranks > kMostThreads)
    throw std::invalid_argument(
        "expected at most " + std::to_string(kMostThreads) +
        " ranks as threads of one process, got " + std::to_string(ranks) +
        ": run it under mpirun, a process a rank");
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  StatusPage page(ranks);
  const std::vector<ReduceGroup> groups = groupsOf(run.program);
  std::vector<std::unique_ptr<Transport>> transports =
      makeInProcessTransports(ranks);
  Standstill standstill(page, run.timeout);
  Failure failure;
  failure.running = ranks;

  auto failLocked = [&](uint32_t rank, const std::string &reason) {
    // Ranks that end because the first one failed have nothing to add.
    if (!failure.report.empty())
      return;
    page.of(rank).fail(reason);
    failure.report = report(run.program, page, all, {}, "");
    transports[rank]->abort("rank " + std::to_string(rank) + " failed");
  };
  auto fail = [&](uint32_t rank, const std::string &reason) {
    std::lock_guard lock(failure.mutex);
    failLocked(rank, reason);
  };
  Listening listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      return page.askToStop();
    std::lock_guard lock(failure.mutex);
    if (!failure.report.empty()) {
      writeReport(failure.report);
      endProcess(1);
    }
    writeReport(run.program, page, all, {}, "ended by " + signalName(signal));
    endProcess(128 + signal);
  });
  auto runThread = [&](uint32_t rank) {
    runOrEnd("running a rank", [&] {
      try {
        runRank(
            run, groups, *transports[rank], page.of(rank), {},
            [&](uint64_t step) { return page.mayBegin(step); },
            [&](const std::string &reason) { fail(rank, reason); });
      } catch (const std::exception &error) {
        fail(rank, error.what());
      }
      std::lock_guard lock(failure.mutex);
      --failure.running;
      failure.ended.notify_all();
    });
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  // From here on the threads use local variables, so no error may leave this
  // function.
  runOrEnd("starting the ranks", [&] {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      try {
        threads.emplace_back(runThread, rank);
      } catch (const std::exception &error) {
        fail(rank, std::string("cannot start its thread: ") + error.what());
        std::lock_guard lock(failure.mutex);
        failure.running -= ranks - rank;
        break;
      }
    }
  });

  {
    constexpr std::chrono::milliseconds kLook(50);
    constexpr std::chrono::seconds kPatience(3);
    std::unique_lock lock(failure.mutex);
    while (!failure.ended.wait_for(lock, kLook, [&] {
      return failure.running == 0 || !failure.report.empty();
    }))
      if (std::optional<uint32_t> rank = standstill.find())
        runOrEnd("reporting a rank that does not move", [&] {
          failLocked(*rank,
                     timedOut(run.timeout,
                              "rank " + std::to_string(*rank) + " to go on"));
        });
    // A rank may compute for a long time, or for ever. End the process without
    // it.
    if (!failure.ended.wait_for(lock, kPatience,
                                [&] { return failure.running == 0; })) {
      writeReport(failure.report);
      endProcess(1);
    }
  }
  for (std::thread &thread : threads)
    thread.join();
  if (!failure.report.empty())
    throw RunFailure(failure.report.substr(0, failure.report.rfind('\n')));
}

void chimera::runtime::runInJob(const TrainingRun &run, Transport &transport,
                                const std::vector<uint32_t> &hostRanks) {
  StatusPage page(transport, hostRanks, run.timeout);
  page.of(transport.rank()).enter(Status::Starting);
  const std::vector<uint32_t> &watched = page.sharing();
  tellOfTheUnwatched(transport.rank(), hostRanks, watched);
  Watcher watcher(run.program, page, transport.rank(), watched, run.timeout);
  Listening listening(run.signals, [&](int signal) {
    signal == SIGUSR1 ? page.askToStop() : watcher.end(signal);
  });
  auto fail = [&](const std::string &reason) {
    // Tells the ranks of other hosts, which cannot see the page.
    watcher.fail(reason, [&] {
      transport.abort("rank " + std::to_string(transport.rank()) +
                      " failed: " + reason);
    });
  };
  // Lower numbers belong to the groups of the program and of meetings.
  StopVote vote(
      transport, static_cast<uint32_t>(run.program.communicators.size()) + 1,
      [&] { return page.askedToStop(); }, run.timeout);
  const std::vector<ReduceGroup> groups = groupsOf(run.program);
  bool oneHost = watched.size() == transport.ranks();
  try {
    checkAgreement(transport, sharedOf(run), run.timeout);
    runRank(
        run, groups, transport, page.of(transport.rank()),
        [&] {
          Watchdog limit(run.timeout, "all ranks to make their groups", fail);
          transport.prepare(groups);
        },
        [&](uint64_t step) {
          return oneHost ? page.mayBegin(step) : vote.mayBegin();
        },
        fail);
    vote.finish();
  } catch (const TransportError &error) {
    if (error.reason == TransportError::Reason::Aborted)
      watcher.leave(error.what());
    fail(error.what());
  } catch (const std::exception &error) {
    fail(error.what());
  }
}
