//===- PidNamespace.h - The PID namespace of a process ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processes of one host may be in containers with PID namespaces of their own.
// A PID of one container is another process in the other container, or no
// process.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
#define CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H

#include <cstdint>
#include <sys/stat.h>

namespace chimera::runtime {

/// Identifies the PID namespace of this process. Equal for two processes if
/// every PID means the same process to both. 0 if the system does not say.
inline uint64_t pidNamespace() {
  struct stat status = {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
