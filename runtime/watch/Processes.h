//===- Processes.h - How the kernel sees processes of this host -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_PROCESSES_H
#define CHIMERA_RUNTIME_WATCH_PROCESSES_H

#include <cstdint>

namespace chimera::runtime {

// All take the number of a process or of a thread. They are false for 0 and
// where the answer cannot be known.

/// Whether it is stopped (SIGSTOP, a debugger).
bool isStopped(int32_t pid);
/// Whether it has ended, and its parent has not yet collected its status.
bool isZombie(int32_t pid);
/// Whether it sleeps, and waits neither for a core nor for a device such as a
/// disk.
bool isAsleep(int32_t pid);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_PROCESSES_H
