//===- PidNamespace.h - The PID namespace of a process ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each container of a host may have its own PID namespace. In another
// container, the PID of a process belongs to another process, or to no process.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
#define CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H

#include <cstdint>
#include <sys/stat.h>

namespace chimera::runtime {

/// A number that identifies the PID namespace of this process. If two processes
/// of a host have the same number, every PID means the same process to both
/// processes. 0 if the number is not known.
inline uint64_t pidNamespace() {
  struct stat status = {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
