//===- RunSimulated.cpp - A run on simulated devices ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/InProcess.h"
#include "runtime/interpreter/SimulatedRanks.h"
#include "runtime/train/FinishRank.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

#include <numeric>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// Gathers, a thread a rank. Throws the first failure.
void finishAll(const TrainingRun &run, SimulatedRanks &ranks, StatusPage &page,
               double seconds) {
  std::vector<std::unique_ptr<Control>> controls =
      makeInProcessControls(page.ranks());
  std::mutex mutex;
  std::exception_ptr failure;
  auto fail = [&](uint32_t rank, std::exception_ptr error) {
    std::lock_guard lock(mutex);
    if (!failure)
      failure = std::move(error);
    controls[rank]->abort("rank " + std::to_string(rank) + " failed");
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < page.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        finishRank(run, *controls[rank], ranks.rank(rank), seconds, Profile(),
                   page.of(rank), [&](const std::string &reason) {
                     fail(rank,
                          std::make_exception_ptr(std::runtime_error(reason)));
                   });
      } catch (...) {
        fail(rank, std::current_exception());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}
} // namespace

void chimera::runtime::runSimulated(const TrainingRun &run, uint64_t seed) {
  uint32_t count = program::rankCount(run.program);
  uint32_t root = rootOf(run.program);
  StatusPage page(count);
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  Listening listening(run.signals, [&](int signal) {
    if (signal == SIGUSR1)
      return page.askToStop();
    writeReport(run.program, page, all, {}, "ended by " + signalName(signal));
    endProcess(128 + signal);
  });
  if (run.onThread)
    run.onThread();
  try {
    SimulatedRanks ranks(
        run.program, run.stages, run.data,
        {.seed = seed,
         .interpreter =
             {.keepGradients = run.gatherGradients,
              .mayBegin = [&](uint64_t step) { return page.mayBegin(step); }},
         .statusOf = [&](uint32_t rank) -> Status & { return page.of(rank); }});
    int64_t begin = steadyNanoseconds();
    auto seconds = [&] {
      return static_cast<double>(steadyNanoseconds() - begin) * 1e-9;
    };
    ranks.run(run.steps,
              [&](uint32_t rank, uint64_t step, std::optional<Loss> loss) {
                if (rank == root && run.onStep)
                  run.onStep({step, loss, seconds()});
              });
    finishAll(run, ranks, page, seconds());
  } catch (const std::exception &error) {
    throw RunFailure("simulated devices, seed " + std::to_string(seed) + ": " +
                     error.what());
  }
}
