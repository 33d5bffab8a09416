//===- Cores.h - The number of cores of a rank ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three things limit the number of cores: the online cores of the host, the
// affinity mask that a launcher gives a process, and the CPU quota of control
// groups. For example, a container that was started with `--cpus=2` is in a
// control group with a quota of 2 cores, but sees all cores of its host. If a
// process starts one thread for each core, the kernel pauses these threads for
// most of every quota period.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CORES_H
#define CHIMERA_RUNTIME_SYSTEM_CORES_H

#include <cstdint>
#include <optional>
#include <string>

namespace chimera::runtime {

struct Cores {
  uint32_t host;   ///< cores of the host or container, which its ranks share
  uint32_t usable; ///< cores on which this process may run
};

/// The numbers of cores, each at least 1. A quota is rounded down to whole
/// cores. It limits the two numbers, because all ranks of a host are usually in
/// one control group. For `root`, see ControlGroups.h.
Cores findCores(const std::string &root = "");

/// The CPU quota of this process in cores: the smallest quota of its control
/// groups and of all groups that enclose them. None if no group has a quota.
std::optional<double> findQuota(const std::string &root = "");

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CORES_H
