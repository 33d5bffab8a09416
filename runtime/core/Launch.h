//===- Launch.h - How this process was started ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CORE_LAUNCH_H
#define CHIMERA_RUNTIME_CORE_LAUNCH_H

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

/// Cores that this process may use, and those that the host has.
uint32_t usableCores();
uint32_t hostCores();

/// Threads for the computations of one rank, so that the `ranksOnHost` do not
/// fight for cores: an equal share, at least 1, at most what it may use.
uint32_t threadsPerRank(uint32_t ranksOnHost);

/// Whether each of the `ranksOnHost`, which compute with `threads` threads, has
/// one core more than it computes on, for its progress thread.
bool hasCoreForProgress(uint32_t ranksOnHost, uint32_t threads);

/// Where a rank computes with several threads, makes those of OpenMP sleep
/// rather than spin while they wait: spinning ones steal the cores that others
/// compute on, which made a step fifty times slower on a busy machine. OpenMP
/// reads its settings when it is loaded, so the process starts itself again,
/// once, unless the user has chosen (OMP_WAIT_POLICY). Call it before there is
/// anything to lose: a pipe that has been read is empty the second time.
void letThreadsSleep(uint32_t threads);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CORE_LAUNCH_H
