//===- Report.h - What a failed run says ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns status entries into text for people. Steps are counted from 1, as the
// progress line does.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_REPORT_H
#define CHIMERA_RUNTIME_WATCH_REPORT_H

#include "runtime/watch/StatusPage.h"

namespace chimera::runtime {

/// The ranks without which `rank` cannot leave its present instruction: the
/// peer of a message it waits for, the members that have not started the
/// all-reduce it waits for. Empty if it computes.
std::vector<uint32_t> awaitedBy(const program::ProgramT &program,
                                const StatusPage &page, uint32_t rank);

/// The ranks of `dead` that died, then those that failed with their reasons,
/// then every other rank of `ranks`: the instruction it is in and where that
/// comes from, for whom it waits and since when, and whether its process is
/// stopped (by SIGSTOP, a debugger). A line each, the last one ended. Of a rank
/// whose entry does not fit the program the line says so. `headline` opens the
/// report where nothing died or failed. Throws std::bad_alloc only.
std::string report(const program::ProgramT &program, const StatusPage &page,
                   const std::vector<uint32_t> &ranks,
                   const std::vector<uint32_t> &dead,
                   const std::string &headline);

/// Writes a report to standard error at once, past stdio, whose locks a thread
/// that is stuck may hold. Where nobody reads that, the rest is dropped after
/// 0.2 s: a process that is to end does.
void writeReport(const std::string &report) noexcept;

/// Makes a report and writes it. Where there is no memory for it, writes what
/// takes none: who failed and why, or `headline`.
void writeReport(const program::ProgramT &program, const StatusPage &page,
                 const std::vector<uint32_t> &ranks,
                 const std::vector<uint32_t> &dead,
                 const std::string &headline) noexcept;

/// Ends the process with status 1, and says that an error of this kind came
/// while it was `doing` something.
[[noreturn]] void endFor(const char *doing, const char *error) noexcept;

/// Does `work` on a thread where nobody would catch what it throws: that ends
/// the process by endFor.
template <typename Work>
void runOrEnd(const char *doing, const Work &work) noexcept {
  try {
    work();
  } catch (const std::exception &error) {
    endFor(doing, error.what());
  } catch (...) {
    endFor(doing, "an error that has no words");
  }
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_REPORT_H
