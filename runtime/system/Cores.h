//===- Cores.h - The cores that ranks have ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three things bound them: the cores that the host has online, those that a
// launcher binds a process to, and the time on them that control groups allow.
// A container with `--cpus=2` is a control group: it sees all cores of its
// host, and who starts a thread on each is put to sleep for most of every
// period.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CORES_H
#define CHIMERA_RUNTIME_SYSTEM_CORES_H

#include <cstdint>
#include <optional>
#include <string>

namespace chimera::runtime {

struct Cores {
  uint32_t host;   ///< for all ranks of this host, or of this container
  uint32_t usable; ///< for this process
};

/// Both are at least 1. A quota counts for all ranks of the host, which mostly
/// share a control group, and as the whole cores in it. The system's files are
/// looked for below the folder `root`.
Cores findCores(const std::string &root = "");

/// The cores' time that the control groups of this process allow, in cores: the
/// least of its group and all groups around that, of version 1 and 2. Nothing
/// where none of them has a quota.
std::optional<double> findQuota(const std::string &root = "");

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CORES_H
