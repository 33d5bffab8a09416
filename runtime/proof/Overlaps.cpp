//===- Overlaps.cpp - Values that would overwrite each other --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Buffers.h"

#include <algorithm>
#include <map>
#include <memory_resource>

namespace chimera::program::verify {

namespace {

std::string bytesOf(const WorkerT &worker, uint32_t buffer) {
  const Buffer &found = worker.buffers[buffer];
  return "buffer " + text(buffer) + " (" + nameOf(found.kind()) + ", bytes " +
         text(found.offset()) + " to " +
         text(found.offset() + found.bytes() - 1) + ")";
}

void failOverlap(const Unrolled &unrolled, const Interval &value,
                 const Interval &other, Report &report) {
  report.add(Rule::Buffers, unrolled.w, unrolled.instructionAt(value.birth),
             "writes " + bytesOf(unrolled.worker, value.buffer) +
                 ", which overlaps " + bytesOf(unrolled.worker, other.buffer) +
                 ", which is in use until " +
                 report.name(unrolled.w, unrolled.instructionAt(other.death)));
}

void failStateOverlap(const Unrolled &unrolled, const Interval &value,
                      const Interval &other, bool valueIsReal, Report &report) {
  report.addAt(
      Rule::Buffers, unrolled.w, kNone,
      "worker " + text(unrolled.w) +
          ": expected a state's bytes to be its own, "
          "got " +
          bytesOf(unrolled.worker, (valueIsReal ? other : value).buffer) +
          " and " +
          bytesOf(unrolled.worker, (valueIsReal ? value : other).buffer));
}

} // namespace

std::vector<bool> findRenamedBuffers(const Unrolled &unrolled, Report &report) {
  const WorkerT &worker = unrolled.worker;
  std::vector<bool> renamed(worker.buffers.size());
  bool any = false;
  for (const SectionRun &run : unrolled.runs) {
    Section range = sectionsOf(worker)[run.section];
    if (range.begin == range.end)
      continue;
    const Instruction &last = worker.instructions[range.end - 1];
    if (last.opcode() != Opcode::Rename)
      continue;
    any = true;
    for (uint32_t buffer : operandsOf(worker, last))
      renamed[buffer] = true;
  }
  if (!any)
    return renamed;
  std::vector<uint32_t> order;
  for (uint32_t b = 0; b < worker.buffers.size(); ++b)
    if (!isStash(worker.buffers[b].kind()) && worker.buffers[b].bytes() > 0)
      order.push_back(b);
  std::ranges::sort(order, {},
                    [&](uint32_t b) { return worker.buffers[b].offset(); });
  uint64_t end = 0, endOfRenamed = 0;
  uint32_t longest = kNone, renamedBefore = kNone;
  for (uint32_t b : order) {
    const Buffer &buffer = worker.buffers[b];
    uint32_t other = kNone;
    if (renamed[b] && buffer.offset() < end)
      other = longest;
    else if (buffer.offset() < endOfRenamed)
      other = renamedBefore;
    if (other != kNone)
      report.addAt(Rule::Buffers, unrolled.w, kNone,
                   "worker " + text(unrolled.w) +
                       ": expected the bytes of a rename's buffer to be its "
                       "own, got " +
                       bytesOf(worker, renamed[b] ? b : other) + " and " +
                       bytesOf(worker, renamed[b] ? other : b));
    uint64_t last = buffer.offset() + buffer.bytes();
    if (last > end) {
      end = last;
      longest = b;
    }
    if (renamed[b] && last > endOfRenamed) {
      endOfRenamed = last;
      renamedBefore = b;
    }
  }
  return renamed;
}

void verifyOverlaps(const Unrolled &unrolled, std::vector<Interval> intervals,
                    const std::vector<bool> &renamed, Report &report) {
  const WorkerT &worker = unrolled.worker;
  const uint32_t positions = unrolled.positions;
  // A sweep over all positions, in order. `live` has the values that are live
  // at the current position, ordered by offset.
  std::pmr::unsynchronized_pool_resource pool;
  // For each offset at which a live value begins, the index of its interval.
  std::pmr::map<uint64_t, uint32_t> live(&pool);
  auto end = [&](uint32_t interval) {
    const Buffer &buffer = worker.buffers[intervals[interval].buffer];
    return buffer.offset() + buffer.bytes();
  };
  size_t real = intervals.size();
  for (const State &state : worker.states)
    for (uint32_t buffer : {state.weights(), state.optimizer_state()})
      intervals.push_back({buffer, 0, positions});

  // For each position, the heads of two linked lists: the intervals that begin
  // at this position, and the intervals that end at this position.
  std::vector<uint32_t> bornAt(positions + 1, kNone);
  std::vector<uint32_t> diedAt(positions + 1, kNone);
  std::vector<uint32_t> nextBorn(intervals.size());
  std::vector<uint32_t> nextDied(intervals.size());
  std::vector<bool> entered(intervals.size());
  for (uint32_t n = 0; n < intervals.size(); ++n) {
    const Buffer &buffer = worker.buffers[intervals[n].buffer];
    if (isStash(buffer.kind()) || buffer.bytes() == 0 ||
        renamed[intervals[n].buffer])
      continue;
    nextBorn[n] = bornAt[intervals[n].birth];
    bornAt[intervals[n].birth] = n;
    nextDied[n] = diedAt[intervals[n].death];
    diedAt[intervals[n].death] = n;
  }
  for (uint32_t position = 0; position < bornAt.size(); ++position) {
    if (position > 0)
      for (uint32_t n = diedAt[position - 1]; n != kNone; n = nextDied[n])
        if (entered[n])
          live.erase(worker.buffers[intervals[n].buffer].offset());
    for (uint32_t n = bornAt[position]; n != kNone; n = nextBorn[n]) {
      uint64_t offset = worker.buffers[intervals[n].buffer].offset();
      auto after = live.lower_bound(offset);
      uint32_t other = kNone;
      if (after != live.end() && after->first < end(n))
        other = after->second;
      else if (after != live.begin() && end(std::prev(after)->second) > offset)
        other = std::prev(after)->second;
      if (other == kNone) {
        live.emplace_hint(after, offset, n);
        entered[n] = true;
      } else if (std::max(n, other) < real) {
        failOverlap(unrolled, intervals[n], intervals[other], report);
      } else {
        failStateOverlap(unrolled, intervals[n], intervals[other], n < real,
                         report);
      }
      if (report.full())
        return;
    }
  }
}

} // namespace chimera::program::verify
