//===- RunOnHost.cpp - A run on one host ----------------------------------===//
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

void chimera::runtime::runOnHost(TrainingRun run, const HostOptions &use,
                                 std::optional<uint64_t> seed) {
  uint32_t ranks = program::rankCount(run.program);
  if (seed)
    run.readAhead = 0; // simulated devices run on one thread
  const HostResources share{
      ranks, shareCores(findCores(), ranks, use.threads, ProgressMode::Off)};
  if (use.setThreads)
    run.onThread = [&] { use.setThreads(share.threads.computing); };
  checkRun(run);
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  checkCapacity(run.program, all, run.checkpoints.has_value(),
                readAheadBytesOf(run), run.accelerator != nullptr);
  if (use.onReady)
    use.onReady(share);
  if (seed)
    runSimulated(run, *seed);
  else
    runInProcess(run);
}
