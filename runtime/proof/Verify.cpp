//===- Verify.cpp - The rules that a proof checks -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"

namespace chimera::program {

namespace verify {

std::string Report::name(uint32_t worker, uint32_t index) const {
  std::string name = "worker " + text(worker) + " instruction " + text(index) +
                     " (" + describe(program, worker, index) + ")";
  std::string location =
      locationOf(program, program.workers[worker]->instructions[index]);
  return location.empty() ? name : name + " at " + location;
}

} // namespace verify

/// Runs the checks on which verifyDeadlock and verifyBuffers rely.
static void verifyStreams(const ProgramT &program, verify::Facts &facts,
                          verify::Report &report) {
  verify::verifyTables(program, facts, report);
  if (report.empty())
    verify::verifyInstructions(program, facts, report);
  if (report.empty())
    verify::verifyActions(program, facts, report);
  if (report.empty())
    verify::verifyWaits(program, facts, report);
  if (report.empty())
    verify::verifyMatching(program, facts, report);
}

std::vector<Violation> verifyProgram(const ProgramT &program) {
  verify::Facts facts;
  verify::Report report(program);
  verifyStreams(program, facts, report);
  if (report.empty())
    verify::verifyDeadlock(program, facts, report);
  if (!report.empty())
    return std::move(report.list);
  std::vector<verify::MemoryUse> memoryUse =
      verify::verifyBuffers(program, report);
  if (report.empty())
    verify::verifyValues(program, facts, report);
  if (report.empty())
    verify::verifyWeights(program, facts, report);
  if (report.empty())
    verify::verifyMemory(program, memoryUse, report);
  return std::move(report.list);
}

void computeMemoryPeaks(ProgramT &program, std::span<const uint32_t> workers) {
  verify::Facts facts;
  verify::Report report(program);
  verifyStreams(program, facts, report);
  if (!report.empty())
    return;
  std::vector<verify::MemoryUse> memoryUse =
      verify::verifyBuffers(program, report);
  if (!report.empty())
    return;
  for (uint32_t w : workers) {
    program.workers[w]->peak_bytes = memoryUse[w].peak;
    program.workers[w]->peak_instruction = memoryUse[w].peakInstruction;
  }
}

} // namespace chimera::program
