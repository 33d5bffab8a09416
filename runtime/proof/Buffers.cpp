//===- Buffers.cpp - Reads and writes -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of reads and writes of buffers. It follows the instructions of a
// worker in execution order, and makes an interval for every value: from the
// instruction that writes the value to the last instruction that uses it.
// Values whose buffers overlap in the arena must have intervals that do not
// overlap (Overlaps.cpp). The bytes in use are the sum over the intervals
// (Memory.cpp). Buffers of a rename share no bytes with other buffers, so the
// check of overlaps ignores the intervals of their values.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Buffers.h"

#include <algorithm>

namespace chimera::program::verify {

namespace {

class BufferVerifier {
public:
  BufferVerifier(const ProgramT &program, uint32_t w,
                 const std::vector<SectionRun> &runs, Report &report)
      : unrolled(program, w, runs), w(w), worker(unrolled.worker),
        report(report), states(worker.buffers.size()) {
    for (const State &state : worker.states)
      for (uint32_t buffer : {state.weights(), state.optimizer_state()}) {
        states[buffer].isState = true;
        states[buffer].isWritten = true;
      }
  }

  MemoryUse run() {
    const std::vector<bool> renamed = findRenamedBuffers(unrolled, report);
    for (const SectionRun &run : unrolled.runs) {
      if (report.full())
        return {};
      walk(run);
    }
    for (uint32_t b = 0; b < states.size() && !report.full(); ++b) {
      if (states[b].isWritten && isStash(b))
        report.addAt(
            Rule::Buffers, w, unrolled.instructionAt(states[b].writer),
            "worker " + text(w) + ": expected the stash in buffer " + text(b) +
                " to be used, as it was written by " +
                report.name(w, unrolled.instructionAt(states[b].writer)));
      close(b);
    }
    if (!report.empty())
      return {};
    verifyOverlaps(unrolled, intervals, renamed, report);
    return report.empty() ? memoryUseOf(unrolled, intervals) : MemoryUse();
  }

private:
  struct BufferState {
    uint32_t birth = kNone; ///< position of the write; kNone: no value
    uint32_t lastUse = 0;
    uint32_t writer = 0;  ///< the last position that wrote it
    uint32_t readers = 0; ///< messages and all-reduces that are reading it
    bool isWritten = false;
    bool isFilling = false; ///< a receive or an all-reduce is writing it
    bool isConsumed = false;
    bool isState = false;
  };

  void walk(const SectionRun &run) {
    Section range = sectionsOf(worker)[run.section];
    for (uint32_t i = range.begin; i < range.end && !report.full();
         ++i, ++position)
      step(worker.instructions[i]);
    if (unrolled.runs.size() == 1 || run.section != kBody || !report.empty())
      return;
    std::vector<bool> written(states.size());
    for (uint32_t b = 0; b < states.size(); ++b)
      written[b] = states[b].isWritten;
    // The buffers that have a value after the second body must be the buffers
    // that have a value after the first body.
    if (run.step == 1)
      for (uint32_t b = 0; b < states.size(); ++b)
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

  bool isStash(uint32_t buffer) const {
    return program::isStash(worker.buffers[buffer].kind());
  }

  void fail(const std::string &message, uint32_t buffer) {
    report.add(Rule::Buffers, w, unrolled.instructionAt(position),
               message + " (buffer " + text(buffer) + ", " +
                   nameOf(worker.buffers[buffer].kind()) + ")");
  }

  void read(uint32_t buffer) {
    BufferState &state = states[buffer];
    if (state.isFilling)
      fail("reads a buffer that is still being received or summed", buffer);
    else if (!state.isWritten)
      fail(state.isConsumed ? "uses a stash a second time"
                            : "reads a buffer that nothing has written",
           buffer);
    state.lastUse = position;
    if (isStash(buffer)) {
      state.isWritten = false;
      state.isConsumed = true;
    }
  }

  void write(uint32_t buffer, bool fills = false) {
    BufferState &state = states[buffer];
    if (state.isFilling)
      fail("writes a buffer that is still being received or summed", buffer);
    else if (state.readers > 0)
      fail("writes a buffer that is still being sent or summed", buffer);
    else if (state.isWritten && isStash(buffer))
      fail("overwrites a stash that was not used", buffer);
    bool inPlace = state.birth != kNone && state.lastUse == position;
    if (!inPlace) {
      close(buffer);
      state.birth = position;
      state.lastUse = position;
    }
    state.writer = position;
    state.isWritten = !fills;
    state.isFilling = fills;
    state.isConsumed = false;
  }

  void close(uint32_t buffer) {
    BufferState &state = states[buffer];
    bool isCounted = state.birth != kNone && !state.isState;
    // If a rename moves a value out of a state's buffer and the value is never
    // used again, `lastUse` is before `birth`. Such a value has no interval.
    if (isCounted && state.lastUse >= state.birth)
      intervals.push_back({buffer, state.birth, state.lastUse});
    state.birth = kNone;
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
      ++states[buffer].readers;
      return;
    }
    case Opcode::InputGradient:
      return replaceStash(operandsOf(worker, instruction),
                          resultsOf(worker, instruction));
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
      // The sum may be in the buffer of a contribution. So call write() before
      // `readers` is increased.
      write(sum, true);
      for (uint32_t buffer : operandsOf(worker, instruction))
        if (buffer != sum)
          ++states[buffer].readers;
      return;
    }
    default:
      for (uint32_t buffer : operandsOf(worker, instruction))
        read(buffer);
      for (uint32_t buffer : resultsOf(worker, instruction))
        write(buffer);
    }
  }

  /// An input gradient frees its stash while it makes its weight stash. So only
  /// the larger one of the two counts at this instruction. If the stash is the
  /// smaller one, its interval ends one instruction earlier. Otherwise the
  /// interval of the weight stash begins one instruction later.
  void replaceStash(std::span<const uint32_t> in,
                    std::span<const uint32_t> out) {
    for (uint32_t buffer : in)
      read(buffer);
    for (uint32_t buffer : out)
      write(buffer);
    const uint32_t stash = in[0], kept = out[0];
    if (worker.buffers[stash].bytes() <= worker.buffers[kept].bytes())
      states[stash].lastUse = position - 1;
    else
      states[kept].birth = position + 1;
    close(stash);
  }

  /// Applies a split or a join. The operands and the results have the same
  /// bytes. The intervals of the operands end one instruction earlier, because
  /// otherwise these bytes would count twice at this instruction.
  void cut(std::span<const uint32_t> from, std::span<const uint32_t> to) {
    for (uint32_t buffer : from) {
      read(buffer);
      BufferState &state = states[buffer];
      if (state.readers > 0)
        fail("writes a buffer that is still being sent or summed", buffer);
      state.lastUse = position - 1;
      close(buffer);
      state.isWritten = false;
    }
    for (uint32_t buffer : to)
      write(buffer);
  }

  /// Applies a rename: moves the values between buffers, together with the
  /// beginnings of their intervals.
  void rename(std::span<const uint32_t> from, std::span<const uint32_t> to) {
    std::vector<BufferState> moved;
    std::vector<bool> isState;
    for (size_t k = 0; k < from.size(); ++k) {
      moved.push_back(states[from[k]]);
      isState.push_back(states[to[k]].isState);
    }
    for (size_t k = 0; k < from.size(); ++k) {
      BufferState &state = states[to[k]];
      state = moved[k];
      state.isState = isState[k];
      if (isState[k] && !moved[k].isState && state.birth != kNone) {
        intervals.push_back({from[k], state.birth, position});
        state.birth = kNone;
      } else if (!isState[k] && moved[k].isState) {
        state.birth = position + 1;
        state.lastUse = position;
      }
    }
  }

  /// Ends the message or the all-reduce that the instruction `post` began.
  void complete(const Instruction &post) {
    uint32_t filled = kNone;
    if (post.results() > 0) {
      filled = resultsOf(worker, post)[0];
      states[filled].isFilling = false;
      states[filled].isWritten = true;
      states[filled].lastUse = position;
    }
    for (uint32_t buffer : operandsOf(worker, post))
      if (buffer != filled) {
        --states[buffer].readers;
        states[buffer].lastUse = position;
      }
  }

  Unrolled unrolled;
  uint32_t w;
  const WorkerT &worker;
  Report &report;
  std::vector<BufferState> states; ///< by buffer
  std::vector<Interval> intervals;
  std::vector<bool> found; ///< by buffer: written after the last body
  uint32_t position = 0;
};

} // namespace

std::vector<MemoryUse> verifyBuffers(const ProgramT &program, Report &report) {
  std::vector<MemoryUse> memoryUse(program.workers.size(), {0, 0, 0});
  for (const std::vector<SectionRun> &runs : runsOf(program)) {
    for (uint32_t w = 0; w < program.workers.size() && !report.full(); ++w) {
      MemoryUse found = BufferVerifier(program, w, runs, report).run();
      MemoryUse &most = memoryUse[w];
      most.bytesAtStatedPeak =
          std::max(most.bytesAtStatedPeak, found.bytesAtStatedPeak);
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
  return memoryUse;
}

} // namespace chimera::program::verify
