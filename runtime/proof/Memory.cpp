//===- Memory.cpp - Bytes that workers hold -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Buffers.h"

#include <algorithm>

namespace chimera::program::verify {

MemoryUse memoryUseOf(const Unrolled &unrolled,
                      const std::vector<Interval> &intervals) {
  const WorkerT &worker = unrolled.worker;
  const uint32_t positions = unrolled.positions;
  uint64_t stateBytes = 0;
  for (const State &state : worker.states)
    for (uint32_t buffer : {state.weights(), state.optimizer_state()})
      stateBytes += worker.buffers[buffer].bytes();
  std::vector<uint64_t> change(positions + 1);
  for (const Interval &interval : intervals) {
    uint64_t bytes = worker.buffers[interval.buffer].bytes();
    change[interval.birth] += bytes;
    change[interval.death + 1] -= bytes;
  }
  // Like `change`, but only for stashes. Needed only if the worker has a memory
  // cap.
  std::vector<uint64_t> stashChange;
  if (worker.memory_cap != 0) {
    stashChange.resize(positions + 1);
    for (const Interval &interval : intervals)
      if (isStash(worker.buffers[interval.buffer].kind())) {
        uint64_t bytes = worker.buffers[interval.buffer].bytes();
        stashChange[interval.birth] += bytes;
        stashChange[interval.death + 1] -= bytes;
      }
  }
  MemoryUse result{stateBytes, 0, stateBytes};
  uint64_t held = stateBytes, stashes = 0;
  uint32_t at = 0;
  for (const SectionRun &run : unrolled.runs) {
    Section range = sectionsOf(worker)[run.section];
    for (uint32_t i = range.begin; i < range.end; ++i, ++at) {
      held += change[at];
      if (held > result.peak) {
        result.peak = held;
        result.peakInstruction = i;
      }
      if (i == worker.peak_instruction)
        result.bytesAtStatedPeak = std::max(result.bytesAtStatedPeak, held);
      if (stashChange.empty())
        continue;
      stashes += stashChange[at];
      if (stashes > result.stashes) {
        result.stashes = stashes;
        result.stashInstruction = i;
      }
    }
  }
  return result;
}

void verifyMemory(const ProgramT &program,
                  const std::vector<MemoryUse> &memoryUse, Report &report) {
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerT &worker = *program.workers[w];
    const MemoryUse &found = memoryUse[w];
    auto fail = [&](Rule rule, uint32_t index, const std::string &message) {
      if (worker.instructions.empty())
        report.add(rule, "worker " + text(w) + ": " + message);
      else
        report.add(rule, w, index, message);
    };
    if (worker.peak_bytes != found.peak)
      fail(Rule::Memory, found.peakInstruction,
           "expected a peak of " + text(worker.peak_bytes) +
               " bytes as stated, got " + text(found.peak) + " here");
    else if (found.bytesAtStatedPeak != found.peak)
      fail(Rule::Memory, worker.peak_instruction,
           "expected the peak of " + text(found.peak) +
               " bytes here as stated, got " + text(found.bytesAtStatedPeak));
    if (worker.memory_cap != 0 &&
        worker.arena_bytes + found.stashes > worker.memory_cap)
      fail(Rule::Cap, found.stashInstruction,
           "expected at most " + text(worker.memory_cap) +
               " bytes, the worker's cap, got an arena of " +
               text(worker.arena_bytes) + " and stashes of " +
               text(found.stashes));
  }
}

} // namespace chimera::program::verify
