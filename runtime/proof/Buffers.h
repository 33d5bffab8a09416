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

/// A worker's instructions in the order of an execution, section after section.
/// A position is an index into this sequence.
struct Unrolled {
  Unrolled(const ProgramT &program, uint32_t w, const std::vector<Run> &runs)
      : w(w), worker(*program.workers[w]), runs(runs) {
    for (const Run &run : runs) {
      Section range = sectionsOf(worker)[run.section];
      positions += range.end - range.begin;
    }
  }

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

  uint32_t w;
  const WorkerT &worker;
  const std::vector<Run> &runs;
  uint32_t positions = 0; ///< the number of instructions of all runs
};

/// A value in a buffer, from the position that writes it to the position that
/// uses it last, both included.
struct Interval {
  uint32_t buffer;
  uint32_t birth;
  uint32_t death;
};

/// For each buffer, whether a rename names it. Reports each buffer in a rename
/// that shares bytes with another buffer.
std::vector<bool> verifyPermuted(const Unrolled &unrolled, Report &report);

/// Reports two values that overlap both in memory and in time, and values that
/// overlap with a state. Requires that the buffers in `permuted` overlap with
/// no other.
void verifyOverlaps(const Unrolled &unrolled, std::vector<Interval> intervals,
                    const std::vector<bool> &permuted, Report &report);

/// The bytes that the worker holds: its states and the values of all
/// `intervals`.
Footprint footprintOf(const Unrolled &unrolled,
                      const std::vector<Interval> &intervals);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_BUFFERS_H
