//===- Launch.h - The job that started this process -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_LAUNCH_H
#define CHIMERA_RUNTIME_TRAIN_LAUNCH_H

#include "runtime/system/Cores.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace chimera::runtime {

/// The address at which ranks find each other without MPI. torchrun sets it;
/// users who start processes by other means can set it too.
struct MasterAddress {
  std::string host;      ///< MASTER_ADDR
  uint16_t port = 0;     ///< MASTER_PORT
  bool isServed = false; ///< whether torchrun serves it; else rank 0 does
  std::string run;       ///< unique among runs that use the same address
};

/// The information that a launcher (mpirun, srun, torchrun) gives to its
/// processes.
struct Job {
  const char *launcher;
  uint32_t rank;
  uint32_t ranks;
  uint32_t ranksOnHost; ///< `ranks` if the launcher does not say
  std::optional<MasterAddress> master = {};
};

/// The job that this process belongs to, according to its environment. None if
/// it was started without a launcher. Throws std::invalid_argument if the
/// environment says that this process is a rank, but the rank or the number of
/// ranks is missing or invalid. Without this error, each process would run the
/// whole program and write the same files.
std::optional<Job> findJob();

/// Makes sure that only one rank reports a failure that all ranks have. Ranks
/// of a job usually fail alike. Call it before a failure is reported, as long
/// as ranks cannot send messages to each other. Rank `first` returns at once
/// and reports. When it then exits, the launcher ends the other ranks before
/// they report. The other ranks return after `firstReportTimeout`, so a rank
/// that fails alone reports a moment later. Without a job, this function
/// returns at once.
void waitForFirstReport(uint32_t first = 0);

/// The time for which a rank waits until another rank has reported the same
/// failure: 4 times `loading`, but at least 2 s and at most 1 min. `loading` is
/// the time that this process took to load its libraries and modules. On a busy
/// machine, `loading` is long, and the other rank may be late by a similar
/// time.
std::chrono::milliseconds firstReportTimeout(std::chrono::milliseconds loading);

enum class ProgressMode { Off, Auto, On };

/// The threads of one rank.
struct RankThreads {
  uint32_t computing;
  bool progress; ///< whether another thread moves messages
};

/// Divides the host's cores among its `ranksOnHost`, so that ranks do not
/// compete for cores. A rank's share is an equal part, at least 1 and at most
/// the cores that it may use.
///
/// If `asked` is not 0, each rank computes with that number of threads. `On`
/// adds a progress thread. `Auto` adds a progress thread if each rank has one
/// more core for it.
///
/// If `asked` is 0, each rank computes with its share. With `Auto`, a progress
/// thread takes one core of the share if the share is at least
/// kShareWithProgress. With `On`, a progress thread takes one core of the share
/// if the share is at least 2; otherwise it is an additional thread.
RankThreads shareCores(const Cores &cores, uint32_t ranksOnHost, uint32_t asked,
                       ProgressMode mode);

/// With a share of at least this size, the progress thread uses at most an
/// eighth of its rank's cores. If there is little communication to overlap, the
/// progress thread therefore costs little.
inline constexpr uint32_t kShareWithProgress = 8;

/// The maximum number of threads per core of the host. With more threads,
/// starting them and synchronising after each computation takes so long that a
/// run seems to hang.
inline constexpr uint32_t kMaxThreadsOnCore = 16;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LAUNCH_H
