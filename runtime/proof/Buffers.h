//===- Buffers.h - Values as intervals of time ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_BUFFERS_H
#define CHIMERA_RUNTIME_PROOF_BUFFERS_H

#include "runtime/proof/Facts.h"

namespace chimera::program::verify {

/// The sequence of a worker's instructions in one execution (runsOf). A section
/// that runs twice occurs twice. A position is an index in this sequence.
struct Unrolled {
  Unrolled(const ProgramT &program, uint32_t w,
           const std::vector<SectionRun> &runs)
      : w(w), worker(*program.workers[w]), runs(runs) {
    for (const SectionRun &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      positions += range.end - range.begin;
    }
  }

  uint32_t instructionAt(uint32_t position) const {
    for (const SectionRun &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      uint32_t length = range.end - range.begin;
      if (position < length)
        return range.begin + position;
      position -= length;
    }
    return kNone;
  }

  uint32_t w;
  const WorkerT &worker;
  const std::vector<SectionRun> &runs;
  uint32_t positions = 0; ///< the number of instructions of all runs
};

/// The lifetime of a value in a buffer: from the position that writes it to the
/// position that uses it last, both included.
struct Interval {
  uint32_t buffer;
  uint32_t birth;
  uint32_t death;
};

/// For each buffer, whether a rename moves values into or out of it. Reports a
/// violation if such a buffer shares bytes with another buffer.
std::vector<bool> findRenamedBuffers(const Unrolled &unrolled, Report &report);

/// Reports two values that overlap in memory and at the same time in their
/// intervals. Also reports values that overlap in memory with a state. Ignores
/// the buffers in `renamed` (findRenamedBuffers), which must share no bytes
/// with other buffers.
void verifyOverlaps(const Unrolled &unrolled, std::vector<Interval> intervals,
                    const std::vector<bool> &renamed, Report &report);

/// The bytes in use: the bytes of the worker's states, and of the values in
/// `intervals`.
MemoryUse memoryUseOf(const Unrolled &unrolled,
                      const std::vector<Interval> &intervals);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_BUFFERS_H
