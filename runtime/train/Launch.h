//===- Launch.h - How this process was started ------------------*- C++ -*-===//
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

/// Where ranks meet that MPI does not bring together, as torchrun tells them
/// and as a user may tell processes that are started by other means.
struct MeetingPlace {
  std::string host;      ///< MASTER_ADDR
  uint16_t port = 0;     ///< MASTER_PORT
  bool isServed = false; ///< by torchrun; else by rank 0
  std::string run;       ///< tells apart what meets there one after the other
};

/// What a launcher (mpirun, srun, torchrun) tells its processes.
struct Job {
  const char *launcher;
  uint32_t rank;
  uint32_t ranks;
  uint32_t ranksOnHost; ///< all, where the launcher does not say
  std::optional<MeetingPlace> place = {};
};

/// The job of which this process is a rank, according to its environment; none
/// if it was started without a launcher. Throws std::invalid_argument where the
/// environment says that it is a rank, but not of how many, or none of them: a
/// process that took itself for a whole run would write the same files.
std::optional<Job> findJob();

/// To be called before a failure is told, as long as the ranks cannot tell each
/// other. Ranks of a job mostly fail alike: rank `first` returns at once and
/// tells, and its end ends the others before they do. They return after
/// `patienceOf` the time that this process took to load, so that one that fails
/// alone is heard a moment later. Without a job it returns at once.
void giveWay(uint32_t first = 0);

/// How long a rank waits for another one to fail alike, if it took `loading`
/// from its start to its main function: 2 s, but longer on a busy machine,
/// where the other one may be that much later.
std::chrono::milliseconds patienceOf(std::chrono::milliseconds loading);

enum class ProgressWish { Off, Auto, On };

/// The threads of one rank.
struct RankThreads {
  uint32_t computing;
  bool progress; ///< whether there is another that moves messages
};

/// Divides the cores among the `ranksOnHost`, so that ranks do not compete for
/// cores. The share of a rank is an equal part, at least 1 and at most the
/// cores that it may use.
///
/// With `asked` threads, `Auto` means a progress thread if each rank has one
/// core more than that. If `asked` is 0, the rank computes with its share. A
/// progress thread then takes one core of the share: with `Auto` if the share
/// is at least kShareWithProgress, with `On` if it is at least 2.
RankThreads shareCores(const Cores &cores, uint32_t ranksOnHost, uint32_t asked,
                       ProgressWish wish);

/// With a share of this size the progress thread takes at most an eighth of the
/// cores of its rank. That limits its cost where it has little communication to
/// hide.
inline constexpr uint32_t kShareWithProgress = 8;

/// More than this many threads for each core of the host take so long to start,
/// and to meet after each computation, that a run seems to hang.
inline constexpr uint32_t kMostThreadsOnCore = 16;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LAUNCH_H
