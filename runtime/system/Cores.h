//===- Cores.h - The number of cores of a rank ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three things limit the number of cores: the online cores of the host, the
// affinity mask that a launcher gives a process, and the CPU quota of control
// groups. A container started with `--cpus=2` is in a control group with a
// quota: it sees all cores of its host. If it starts a thread on each of them,
// the kernel stops these threads for most of every quota period.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CORES_H
#define CHIMERA_RUNTIME_SYSTEM_CORES_H

#include <cstdint>
#include <optional>
#include <string>

namespace chimera::runtime {

struct Cores {
  uint32_t host;   ///< of the host or container, shared by all its ranks
  uint32_t usable; ///< that this process may run on
};

/// Both numbers are at least 1. A quota is rounded down to whole cores. It
/// limits `host` too, because all ranks of a host are usually in one control
/// group. `root` is put before the paths of the system's files.
Cores findCores(const std::string &root = "");

/// The CPU quota of this process in cores: the smallest quota of its control
/// group and all enclosing groups, of version 1 and 2. Nothing if no group has
/// a quota.
std::optional<double> findQuota(const std::string &root = "");

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CORES_H
