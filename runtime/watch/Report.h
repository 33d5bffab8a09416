//===- Report.h - The report of a failed run --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of a report, made from an account. Steps are counted from 1, as in
// the progress line of a run.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_REPORT_H
#define CHIMERA_RUNTIME_WATCH_REPORT_H

#include "runtime/program/Program.h"
#include "runtime/watch/Account.h"

namespace chimera::runtime {

/// The ranks for which `rank` waits at its current instruction: the peer of a
/// message, or the members that have not started an all-reduce, if they are in
/// the account. Empty if the instruction is not a wait. Requires that `rank` is
/// in the account.
std::vector<uint32_t> awaitedBy(const program::ProgramT &program,
                                const Account &account, uint32_t rank);

/// The text of the report. It has, in this order:
/// - a line for each rank that died,
/// - a line for each rank that is stopped, if a rank failed, or if only the
///   headline says what happened and no signal ended the run,
/// - a line for each rank that failed, with the reason,
/// - the headline of the account, if no rank died or failed,
/// - a line for each rank that has not died: its instruction and the source
///   location, the ranks for which it waits, for how long it has been there,
///   and whether its process is stopped (by SIGSTOP or a debugger),
/// - the numbers of the ranks that are not in the account,
/// - if a signal ended the run: advice on how to stop a run and keep its
///   results.
///
/// If a rank failed before any rank began its first step, and not because a
/// wait timed out, the report has only the lines of ranks that failed: the
/// others tell nothing about the reason, such as a file that is damaged.
///
/// If the state of a rank is impossible for the program, its line says that it
/// is unknown. The last line ends with a newline. Throws only std::bad_alloc.
std::string report(const program::ProgramT &program, const Account &account);

/// The beginning of the headline if a signal ended the run.
inline constexpr const char *kEndedBy = "ended by ";
/// The last line of the report, if a signal ended the run.
inline constexpr const char *kHowToStop =
    "to stop a run after its step, with its results, send SIGUSR1 (kill -USR1) "
    "to chimera-run, to its mpirun or to one of its ranks";

/// Writes the name of this program and then `report` to standard error. Does
/// not use stdio, because a thread that hangs may hold the locks of stdio. If
/// no process reads standard error, the rest of the report is dropped after 0.2
/// s, so that this process can end.
void writeReport(const std::string &report) noexcept;

/// Makes a report from the page's entries of `ranks` and writes it. `dead` are
/// the ranks that have died. If there is no memory for the report, writes only
/// the ranks that died and the ranks that failed, with their reasons. If there
/// are none, writes `headline`. This does not allocate memory.
void writeReport(const program::ProgramT &program, const StatusPage &page,
                 const std::vector<uint32_t> &ranks,
                 const std::vector<uint32_t> &dead,
                 const std::string &headline) noexcept;

/// Writes `error` to standard error and ends the process with status 1. `doing`
/// is the work that failed, for example "watching calls".
[[noreturn]] void endWithError(const char *doing, const char *error) noexcept;

/// The text for an exception that is not a std::exception.
inline constexpr const char *kUnknownError = "an unknown error";

/// Calls `work`. If it throws, endWithError ends the process. Use it on threads
/// whose exceptions no caller catches. `doing` is a name of the work.
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
