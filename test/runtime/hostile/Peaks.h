//===- Peaks.h - Corrects the stated peaks of a changed program -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_PEAKS_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_PEAKS_H

#include "runtime/proof/Facts.h"

namespace chimera::runtime::hostile {

/// Sets the stated peak of each worker to its actual peak, so that a changed
/// program is not refused for a wrong peak. Does nothing if verifyBuffers finds
/// a violation.
inline void setPeaks(program::ProgramT &program) {
  program::verify::Report report(program);
  std::vector<program::verify::MemoryUse> found =
      program::verify::verifyBuffers(program, report);
  if (!report.empty())
    return;
  for (size_t w = 0; w < program.workers.size(); ++w) {
    program.workers[w]->peak_bytes = found[w].peak;
    program.workers[w]->peak_instruction = found[w].peakInstruction;
  }
}

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_PEAKS_H
