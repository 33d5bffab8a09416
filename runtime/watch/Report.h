//===- Report.h - The report of a failed run --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns status entries into text. Steps are counted from 1, as in the progress
// line.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_REPORT_H
#define CHIMERA_RUNTIME_WATCH_REPORT_H

#include "runtime/program/Program.h"
#include "runtime/watch/Account.h"

namespace chimera::runtime {

/// The ranks that `rank` waits for in its present instruction, as far as the
/// account knows them: the peer of a message, or the members that have not
/// started an all-reduce. Empty if the rank computes. Requires that the account
/// contains the rank.
std::vector<uint32_t> awaitedBy(const program::ProgramT &program,
                                const Account &account, uint32_t rank);

/// The report, which has in this order:
/// - a line for each rank that died,
/// - if a rank failed, a line for each rank that is stopped,
/// - a line for each rank that failed, with the reason,
/// - the headline of the account, if no rank died or failed,
/// - a line for each rank that has not died: its instruction and the source
///   location, the ranks it waits for and since when, and whether its process
///   is stopped (by SIGSTOP or a debugger),
/// - the numbers of the ranks of which nothing is known,
/// - if a signal ended the run, how to stop a run with its results.
///
/// If a rank's entry does not fit the program, its line says so. The last line
/// ends with a newline. Throws only std::bad_alloc.
std::string report(const program::ProgramT &program, const Account &account);

/// The beginning of the headline if a signal ended the run.
inline constexpr const char *kEndedBy = "ended by ";
/// The last line of such a report.
inline constexpr const char *kHowToStop =
    "to stop a run after its step, with its results, send SIGUSR1 (kill -USR1) "
    "to chimera-run, to its mpirun or to one of its ranks";

/// Writes a report to standard error at once, after the name of this program.
/// Does not use stdio, because a thread that hangs may hold its locks. If
/// nobody reads standard error, the rest of the report is dropped after 0.2 s,
/// so that the process can end.
void writeReport(const std::string &report) noexcept;

/// Makes a report from the page's entries of `ranks` and writes it. `dead` are
/// the ranks that have died. If there is no memory for the report, writes only
/// the ranks that died or failed, with their reasons, or else `headline`. That
/// needs no memory.
void writeReport(const program::ProgramT &program, const StatusPage &page,
                 const std::vector<uint32_t> &ranks,
                 const std::vector<uint32_t> &dead,
                 const std::string &headline) noexcept;

/// Reports `error`, which occurred in the work that `doing` names, and ends the
/// process with status 1.
[[noreturn]] void endWithError(const char *doing, const char *error) noexcept;

/// The text for an exception that is not a std::exception.
inline constexpr const char *kUnknownError = "an unknown error";

/// Runs `work` on a thread that has no handler for exceptions. If `work`
/// throws, endWithError ends the process.
template <typename Work>
void runOrEnd(const char *doing, const Work &work) noexcept {
  try {
    work();
  } catch (const std::exception &error) {
    endWithError(doing, error.what());
  } catch (...) {
    endWithError(doing, kUnknownError);
  }
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_REPORT_H
