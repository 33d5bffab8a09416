//===- Processes.h - States of processes in /proc ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_PROCESSES_H
#define CHIMERA_RUNTIME_WATCH_PROCESSES_H

#include <cstdint>

namespace chimera::runtime {

// `pid` is the ID of a process or of a thread. The functions return false if
// `pid` is 0 or if the state cannot be read.

/// Whether the process is stopped (by SIGSTOP or a debugger).
bool isStopped(int32_t pid);
/// Whether the process has ended, but its parent has not collected its status
/// yet.
bool isZombie(int32_t pid);
/// Whether the process exists and has not ended. A stopped process has not.
bool isRunning(int32_t pid);
/// Whether the process sleeps (state S): it does not run, and waits neither for
/// a core nor for a device such as a disk.
bool isAsleep(int32_t pid);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_PROCESSES_H
