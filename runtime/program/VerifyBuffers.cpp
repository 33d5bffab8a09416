//===- VerifyBuffers.cpp - Reads, writes and bytes held -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks each stream as it runs and turns every value into an interval, from the
// instruction that writes it to the last that uses it. Two buffers that overlap
// in the arena must not overlap in time, and the bytes of the intervals add up
// to what the worker holds. Buffers that a rename permutes overlap with none at
// any time, so that their values' intervals need no place.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/VerifyInternal.h"

#include <algorithm>
#include <map>
#include <memory_resource>

namespace chimera::program::verify {

namespace {

/// A value in a buffer: born and last used at these positions, both included.
struct Interval {
  uint32_t buffer;
  uint32_t birth;
  uint32_t death;
};

class BufferVerifier {
public:
  BufferVerifier(const ProgramT &program, uint32_t w,
                 const std::vector<Run> &runs, Report &report)
      : w(w), worker(*program.workers[w]), report(report), runs(runs),
        slots(worker.buffers.size()), permuted(worker.buffers.size()) {
    for (const Run &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      positions += range.end - range.begin;
    }
    for (const State &state : worker.states)
      for (uint32_t buffer : {state.weights(), state.optimizer_state()}) {
        slots[buffer].isState = true;
        slots[buffer].isWritten = true;
        stateBytes += worker.buffers[buffer].bytes();
      }
  }

  Footprint run() {
    verifyPermuted();
    for (const Run &run : runs) {
      if (report.full())
        return {};
      walk(run);
    }
    for (uint32_t b = 0; b < slots.size() && !report.full(); ++b) {
      if (slots[b].isWritten && isStash(b))
        report.addAt(Rule::Buffers, w, instructionAt(slots[b].birth),
                     "worker " + text(w) + ": expected the stash in buffer " +
                         text(b) + " to be used, as it was written by " +
                         report.name(w, instructionAt(slots[b].birth)));
      close(b);
    }
    if (!report.empty())
      return {};
    verifyOverlaps();
    return report.empty() ? footprint() : Footprint();
  }

private:
  struct Slot {
    uint32_t birth = kNone; ///< kNone: has held nothing yet
    uint32_t lastUse = 0;
    uint32_t readers = 0; ///< transfers and all-reduces that read it now
    bool isWritten = false;
    bool isFilling = false; ///< a receive or an all-reduce writes it now
    bool isConsumed = false;
    bool isState = false;
  };

  uint32_t instructionAt(uint32_t position) const {
    for (const Run &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      uint32_t length = range.end - range.begin;
      if (position < length)
        return range.begin + position;
      position -= length;
    }
    return kNone;
  }

  void walk(const Run &run) {
    Section range = sectionsOf(worker)[run.section];
    for (uint32_t i = range.begin; i < range.end && !report.full();
         ++i, ++position)
      step(worker.instructions[i]);
    if (runs.size() == 1 || run.section != kBody || !report.empty())
      return;
    std::vector<bool> written(slots.size());
    for (uint32_t b = 0; b < slots.size(); ++b)
      written[b] = slots[b].isWritten;
    // What the second body leaves must be what the first did.
    if (run.step == 1)
      for (uint32_t b = 0; b < slots.size(); ++b)
        if (written[b] != found[b])
          report.addAt(
              Rule::Buffers, w, kNone,
              "worker " + text(w) +
                  ": expected the body to leave each buffer as it found "
                  "it, got buffer " +
                  text(b) + " (" + nameOf(worker.buffers[b].kind()) + ") " +
                  (written[b] ? "filled" : "emptied"));
    found = std::move(written);
  }

  /// Refuses buffers of a rename that share bytes with any other buffer.
  void verifyPermuted() {
    bool any = false;
    for (const Run &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      if (range.begin == range.end)
        continue;
      const Instruction &last = worker.instructions[range.end - 1];
      if (last.opcode() != Opcode::Rename)
        continue;
      any = true;
      for (uint32_t buffer : operandsOf(worker, last))
        permuted[buffer] = true;
    }
    if (!any)
      return;
    std::vector<uint32_t> order;
    for (uint32_t b = 0; b < worker.buffers.size(); ++b)
      if (!isStash(b) && worker.buffers[b].bytes() > 0)
        order.push_back(b);
    std::ranges::sort(order, {},
                      [&](uint32_t b) { return worker.buffers[b].offset(); });
    uint64_t end = 0, endOfPermuted = 0;
    uint32_t longest = kNone, permutedBefore = kNone;
    for (uint32_t b : order) {
      const Buffer &buffer = worker.buffers[b];
      uint32_t other = kNone;
      if (permuted[b] && buffer.offset() < end)
        other = longest;
      else if (buffer.offset() < endOfPermuted)
        other = permutedBefore;
      if (other != kNone)
        report.addAt(Rule::Buffers, w, kNone,
                     "worker " + text(w) +
                         ": expected the bytes of a rename's buffer to be its "
                         "own, got " +
                         bytesOf(permuted[b] ? b : other) + " and " +
                         bytesOf(permuted[b] ? other : b));
      uint64_t last = buffer.offset() + buffer.bytes();
      if (last > end) {
        end = last;
        longest = b;
      }
      if (permuted[b] && last > endOfPermuted) {
        endOfPermuted = last;
        permutedBefore = b;
      }
    }
  }

  bool isStash(uint32_t buffer) const {
    return worker.buffers[buffer].kind() == ValueKind::Stash;
  }

  void fail(const std::string &message, uint32_t buffer) {
    report.add(Rule::Buffers, w, instructionAt(position),
               message + " (buffer " + text(buffer) + ", " +
                   nameOf(worker.buffers[buffer].kind()) + ")");
  }

  void read(uint32_t buffer) {
    Slot &slot = slots[buffer];
    if (slot.isFilling)
      fail("reads what is still being received or summed", buffer);
    else if (!slot.isWritten)
      fail(slot.isConsumed ? "uses a stash a second time"
                           : "reads what nothing has written",
           buffer);
    slot.lastUse = position;
    if (isStash(buffer)) {
      slot.isWritten = false;
      slot.isConsumed = true;
    }
  }

  void write(uint32_t buffer, bool fills = false) {
    Slot &slot = slots[buffer];
    if (slot.isFilling)
      fail("writes what is still being received or summed", buffer);
    else if (slot.readers > 0)
      fail("writes what is still being sent or summed", buffer);
    else if (slot.isWritten && isStash(buffer))
      fail("overwrites a stash that was not used", buffer);
    bool inPlace = slot.birth != kNone && slot.lastUse == position;
    if (!inPlace) {
      close(buffer);
      slot.birth = position;
      slot.lastUse = position;
    }
    slot.isWritten = !fills;
    slot.isFilling = fills;
    slot.isConsumed = false;
  }

  void close(uint32_t buffer) {
    Slot &slot = slots[buffer];
    bool isCounted = slot.birth != kNone && !slot.isState;
    // What a rename moved out of a state's buffer may never be used.
    if (isCounted && slot.lastUse >= slot.birth)
      intervals.push_back({buffer, slot.birth, slot.lastUse});
    slot.birth = kNone;
  }

  void step(const Instruction &instruction) {
    switch (instruction.opcode()) {
    case Opcode::Group:
      return;
    case Opcode::Wait:
      return complete(worker.instructions[instruction.target()]);
    case Opcode::PostSend: {
      uint32_t buffer = operandsOf(worker, instruction)[0];
      read(buffer);
      ++slots[buffer].readers;
      return;
    }
    case Opcode::Split:
    case Opcode::Join:
      return cut(operandsOf(worker, instruction),
                 resultsOf(worker, instruction));
    case Opcode::Rename:
      return rename(operandsOf(worker, instruction),
                    resultsOf(worker, instruction));
    case Opcode::PostRecv:
      write(resultsOf(worker, instruction)[0], true);
      return;
    case Opcode::AllReduceStart: {
      uint32_t sum = resultsOf(worker, instruction)[0];
      for (uint32_t buffer : operandsOf(worker, instruction))
        read(buffer);
      // The sum may take the place of a contribution.
      write(sum, true);
      for (uint32_t buffer : operandsOf(worker, instruction))
        if (buffer != sum)
          ++slots[buffer].readers;
      return;
    }
    default:
      for (uint32_t buffer : operandsOf(worker, instruction))
        read(buffer);
      for (uint32_t buffer : resultsOf(worker, instruction))
        write(buffer);
    }
  }

  /// The operands end just before, as the results take their bytes.
  void cut(std::span<const uint32_t> from, std::span<const uint32_t> to) {
    for (uint32_t buffer : from) {
      read(buffer);
      Slot &slot = slots[buffer];
      if (slot.readers > 0)
        fail("writes what is still being sent or summed", buffer);
      slot.lastUse = position - 1;
      close(buffer);
      slot.isWritten = false;
    }
    for (uint32_t buffer : to)
      write(buffer);
  }

  /// Values change places, and their intervals with them.
  void rename(std::span<const uint32_t> from, std::span<const uint32_t> to) {
    std::vector<Slot> moved;
    std::vector<bool> isState;
    for (size_t k = 0; k < from.size(); ++k) {
      moved.push_back(slots[from[k]]);
      isState.push_back(slots[to[k]].isState);
    }
    for (size_t k = 0; k < from.size(); ++k) {
      Slot &slot = slots[to[k]];
      slot = moved[k];
      slot.isState = isState[k];
      if (isState[k] && !moved[k].isState && slot.birth != kNone) {
        intervals.push_back({from[k], slot.birth, position});
        slot.birth = kNone;
      } else if (!isState[k] && moved[k].isState) {
        slot.birth = position + 1;
        slot.lastUse = position;
      }
    }
  }

  /// What the wait for `post` ends.
  void complete(const Instruction &post) {
    uint32_t filled = kNone;
    if (post.results() > 0) {
      filled = resultsOf(worker, post)[0];
      slots[filled].isFilling = false;
      slots[filled].isWritten = true;
      slots[filled].lastUse = position;
    }
    for (uint32_t buffer : operandsOf(worker, post))
      if (buffer != filled) {
        --slots[buffer].readers;
        slots[buffer].lastUse = position;
      }
  }

  /// Refuses two values whose bytes and times overlap: sweeps over time with
  /// the live values ordered by offset.
  void verifyOverlaps() {
    std::pmr::unsynchronized_pool_resource pool;
    // By offset: the interval's number.
    std::pmr::map<uint64_t, uint32_t> live(&pool);
    auto end = [&](uint32_t interval) {
      const Buffer &buffer = worker.buffers[intervals[interval].buffer];
      return buffer.offset() + buffer.bytes();
    };
    size_t real = intervals.size();
    for (const State &state : worker.states)
      for (uint32_t buffer : {state.weights(), state.optimizer_state()})
        intervals.push_back({buffer, 0, positions});

    // Intervals by birth and by death, as linked lists by position.
    std::vector<uint32_t> bornAt(positions + 1, kNone);
    std::vector<uint32_t> diedAt(positions + 1, kNone);
    std::vector<uint32_t> nextBorn(intervals.size());
    std::vector<uint32_t> nextDied(intervals.size());
    std::vector<bool> entered(intervals.size());
    for (uint32_t n = 0; n < intervals.size(); ++n) {
      const Buffer &buffer = worker.buffers[intervals[n].buffer];
      if (buffer.kind() == ValueKind::Stash || buffer.bytes() == 0 ||
          permuted[intervals[n].buffer])
        continue;
      nextBorn[n] = bornAt[intervals[n].birth];
      bornAt[intervals[n].birth] = n;
      nextDied[n] = diedAt[intervals[n].death];
      diedAt[intervals[n].death] = n;
    }
    for (position = 0; position < bornAt.size(); ++position) {
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
        else if (after != live.begin() &&
                 end(std::prev(after)->second) > offset)
          other = std::prev(after)->second;
        if (other == kNone) {
          live.emplace_hint(after, offset, n);
          entered[n] = true;
        } else if (std::max(n, other) < real) {
          failOverlap(intervals[n], intervals[other]);
        } else {
          failStateOverlap(intervals[n], intervals[other], n < real);
        }
        if (report.full())
          return;
      }
    }
    intervals.resize(real);
  }

  std::string bytesOf(uint32_t buffer) const {
    const Buffer &found = worker.buffers[buffer];
    return "buffer " + text(buffer) + " (" + nameOf(found.kind()) + ", bytes " +
           text(found.offset()) + " to " +
           text(found.offset() + found.bytes() - 1) + ")";
  }

  void failOverlap(const Interval &value, const Interval &other) {
    report.add(Rule::Buffers, w, instructionAt(value.birth),
               "writes " + bytesOf(value.buffer) + ", which overlaps " +
                   bytesOf(other.buffer) + ", which is in use until " +
                   report.name(w, instructionAt(other.death)));
  }

  void failStateOverlap(const Interval &value, const Interval &other,
                        bool valueIsReal) {
    report.addAt(Rule::Buffers, w, kNone,
                 "worker " + text(w) +
                     ": expected a state's bytes to be its own, "
                     "got " +
                     bytesOf((valueIsReal ? other : value).buffer) + " and " +
                     bytesOf((valueIsReal ? value : other).buffer));
  }

  Footprint footprint() const {
    std::vector<uint64_t> change(positions + 1);
    for (const Interval &interval : intervals) {
      uint64_t bytes = worker.buffers[interval.buffer].bytes();
      change[interval.birth] += bytes;
      change[interval.death + 1] -= bytes;
    }
    // Stashes are looked at by themselves only for a cap.
    std::vector<uint64_t> stashChange;
    if (worker.memory_cap != 0) {
      stashChange.resize(positions + 1);
      for (const Interval &interval : intervals)
        if (isStash(interval.buffer)) {
          uint64_t bytes = worker.buffers[interval.buffer].bytes();
          stashChange[interval.birth] += bytes;
          stashChange[interval.death + 1] -= bytes;
        }
    }
    Footprint result{stateBytes, 0, stateBytes};
    uint64_t held = stateBytes, stashes = 0;
    uint32_t at = 0;
    for (const Run &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      for (uint32_t i = range.begin; i < range.end; ++i, ++at) {
        held += change[at];
        if (held > result.peak) {
          result.peak = held;
          result.peakInstruction = i;
        }
        if (i == worker.peak_instruction)
          result.atStated = std::max(result.atStated, held);
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

  uint32_t w;
  const WorkerT &worker;
  Report &report;
  const std::vector<Run> &runs;
  std::vector<Slot> slots;    ///< by buffer
  std::vector<bool> permuted; ///< by buffer, whether a rename names it
  std::vector<Interval> intervals;
  uint64_t stateBytes = 0;
  std::vector<bool> found; ///< by buffer, what the first body left
  uint32_t positions = 0;  ///< instructions of all runs
  uint32_t position = 0;
};

} // namespace

std::vector<Footprint> verifyBuffers(const ProgramT &program, Report &report) {
  std::vector<Footprint> footprints(program.workers.size(), {0, 0, 0});
  for (const std::vector<Run> &runs : runsOf(program)) {
    for (uint32_t w = 0; w < program.workers.size() && !report.full(); ++w) {
      Footprint found = BufferVerifier(program, w, runs, report).run();
      Footprint &most = footprints[w];
      most.atStated = std::max(most.atStated, found.atStated);
      if (found.peak > most.peak) {
        most.peak = found.peak;
        most.peakInstruction = found.peakInstruction;
      }
      if (found.stashes > most.stashes) {
        most.stashes = found.stashes;
        most.stashInstruction = found.stashInstruction;
      }
    }
    if (!report.empty())
      break;
  }
  return footprints;
}

void verifyMemory(const ProgramT &program,
                  const std::vector<Footprint> &footprints, Report &report) {
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerT &worker = *program.workers[w];
    const Footprint &found = footprints[w];
    auto fail = [&](uint32_t index, const std::string &message) {
      if (worker.instructions.empty())
        report.add(Rule::Memory, "worker " + text(w) + ": " + message);
      else
        report.add(Rule::Memory, w, index, message);
    };
    if (worker.peak_bytes != found.peak)
      fail(found.peakInstruction,
           "expected a peak of " + text(worker.peak_bytes) +
               " bytes as stated, got " + text(found.peak) + " here");
    else if (found.atStated != found.peak)
      fail(worker.peak_instruction, "expected the peak of " + text(found.peak) +
                                        " bytes here as stated, got " +
                                        text(found.atStated));
    if (worker.memory_cap != 0 &&
        worker.arena_bytes + found.stashes > worker.memory_cap)
      fail(found.stashInstruction,
           "expected at most " + text(worker.memory_cap) +
               " bytes, the worker's cap, got an arena of " +
               text(worker.arena_bytes) + " and stashes of " +
               text(found.stashes));
  }
}

} // namespace chimera::program::verify
