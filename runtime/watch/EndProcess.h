//===- EndProcess.h - Ends the process at once ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The end of a process while its other threads are still running. This is
// needed if a rank of a job fails, if a signal ends the run, or if a thread
// hangs. The process belongs to the program that started the run. So this
// program chooses the function that ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
#define CHIMERA_RUNTIME_WATCH_ENDPROCESS_H

namespace chimera::runtime {

/// Sets the function `end`, which endProcess calls with the exit status. Any
/// thread may call `end`, and no destructors have run before the call. `end`
/// must not return. Set it before a run begins and before a Signals object
/// exists. If it is not set, endProcess calls std::terminate.
void setEndProcess(void (*end)(int status)) noexcept;

/// Ends the process with the function of setEndProcess. The status is 1 after a
/// failure, and 128 + N if signal N ends the run.
[[noreturn]] void endProcess(int status) noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
