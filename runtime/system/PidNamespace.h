//===- PidNamespace.h - Where a process has its number -------- -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processes of one host may be in containers with process numbers of their own,
// where the number of one is another's, or nobody's.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
#define CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H

#include <cstdint>
#include <sys/stat.h>

namespace chimera::runtime {

/// The same for processes that know each other by the same numbers; 0 if the
/// system does not say.
inline uint64_t pidNamespace() {
  struct stat status = {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_PIDNAMESPACE_H
