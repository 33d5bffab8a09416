//===- Launch.h - How this process was started ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_LAUNCH_H
#define CHIMERA_RUNTIME_TRAIN_LAUNCH_H

#include "runtime/transport/Cores.h"

#include <cstdint>
#include <optional>

namespace chimera::runtime {

/// What a launcher (mpirun, srun, torchrun) tells its processes.
struct Job {
  const char *launcher;
  uint32_t rank;
  uint32_t ranks;
  uint32_t ranksOnHost; ///< all, where the launcher does not say
};

/// The job that this process is a rank of, by its environment; none if it was
/// started by itself.
std::optional<Job> findJob();

enum class ProgressWish { Off, Auto, On };

/// The threads of one rank.
struct RankThreads {
  uint32_t computing;
  bool progress; ///< whether there is another that moves messages
};

/// Shares the cores out to the `ranksOnHost`, so that they do not fight for
/// them. A rank's share is its equal part, at least 1, at most what it may use.
///
/// It computes with `asked` threads, and then `Auto` means a progress thread
/// where each rank has a core more than that. Where `asked` is 0 it computes
/// with its share, of which a progress thread takes one core: with `Auto` from
/// a share of kShareWithProgress on, with `On` from 2 on.
RankThreads shareCores(const Cores &cores, uint32_t ranksOnHost, uint32_t asked,
                       ProgressWish wish);

/// From here on the core of the progress thread is at most an eighth of what a
/// rank could compute on: a bound on what it costs where there is little to
/// hide.
inline constexpr uint32_t kShareWithProgress = 8;

/// More than this many threads for each core of the host take so long to start,
/// and to meet after each computation, that a run seems to hang.
inline constexpr uint32_t kMostThreadsOnCore = 16;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_LAUNCH_H
