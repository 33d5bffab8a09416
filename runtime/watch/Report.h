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

#include "runtime/program/Program.h"
#include "runtime/watch/Account.h"

namespace chimera::runtime {

/// The ranks without which `rank` cannot leave its present instruction, as far
/// as the account knows: the peer of a message it waits for, the members that
/// have not started the all-reduce it waits for. Empty if it computes. Requires
/// that the account knows the rank.
std::vector<uint32_t> awaitedBy(const program::ProgramT &program,
                                const Account &account, uint32_t rank);

/// A line for each rank: first those that died, then, where some failed, those
/// that are stopped, then those that failed, with their reasons, then every
/// other one, with the instruction it is in and where that comes from, for whom
/// it waits and since when, and whether its process is stopped (by SIGSTOP or a
/// debugger); then, of which ranks nothing is known; last, of a run that a
/// signal ended, how to stop one with its results. If the entry of a rank does
/// not fit the program, its line says so. The last line ends with a line break.
/// Throws std::bad_alloc only.
std::string report(const program::ProgramT &program, const Account &account);

/// With this begins the headline of a report on a run that a signal ended.
inline constexpr const char *kEndedBy = "ended by ";
/// The last line of such a report.
inline constexpr const char *kHowToStop =
    "to stop a run after its step, with its results, send SIGUSR1 (kill -USR1) "
    "to it, to its mpirun or to one of its ranks";

/// Writes a report to standard error at once, behind the name of this program.
/// It does not use stdio, whose
/// locks a stuck thread may hold. If nobody reads standard error, the rest of
/// the report is dropped after 0.2 s, so that the process can end.
void writeReport(const std::string &report) noexcept;

/// Makes a report of what the page says of `ranks`, of which some are dead, and
/// writes it. If there is no memory for the report, writes
/// only who failed and why, or `headline`, which needs no memory.
void writeReport(const program::ProgramT &program, const StatusPage &page,
                 const std::vector<uint32_t> &ranks,
                 const std::vector<uint32_t> &dead,
                 const std::string &headline) noexcept;

/// Says that `error` came while the process was `doing` something, and ends the
/// process with status 1.
[[noreturn]] void endFor(const char *doing, const char *error) noexcept;

/// Of an error that is no std::exception.
inline constexpr const char *kWithoutWords = "an error that has no words";

/// Does `work` on a thread where nobody catches exceptions. If it throws,
/// endFor ends the process.
template <typename Work>
void runOrEnd(const char *doing, const Work &work) noexcept {
  try {
    work();
  } catch (const std::exception &error) {
    endFor(doing, error.what());
  } catch (...) {
    endFor(doing, kWithoutWords);
  }
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_REPORT_H
