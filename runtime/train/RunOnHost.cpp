//===- RunOnHost.cpp - A run that shares out its host ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunOnHost.h"

#include "runtime/train/Capacity.h"

#include <numeric>

using namespace chimera;
using namespace chimera::runtime;

void chimera::runtime::runOnHost(TrainingRun run, const HostUse &use,
                                 std::optional<uint64_t> seed) {
  uint32_t ranks = program::rankCount(run.program);
  const HostShare share{
      ranks, shareCores(findCores(), ranks, use.threads, ProgressWish::Off)};
  if (use.setThreads)
    run.onThread = [&] { use.setThreads(share.threads.computing); };
  checkRun(run);
  if (run.accelerator) {
    if (ranks > run.accelerator->devices())
      throw std::invalid_argument(
          "expected a GPU for each rank of a process, got " +
          program::counted(ranks, "rank") + " and " +
          program::counted(run.accelerator->devices(), "GPU") +
          ": start a process for each rank, then they may share one: torchrun "
          "--no-python --nproc-per-node " +
          std::to_string(ranks) + " chimera-run …, or mpirun -n " +
          std::to_string(ranks) + " chimera-run …");
  } else {
    std::vector<uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    checkCapacity(run.program, all);
  }
  if (use.onReady)
    use.onReady(share);
  if (seed)
    runSimulated(run, *seed);
  else
    runInProcess(run);
}
