//===- EndProcess.h - Ends the process at once ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a rank of a job fails, a signal ends the run, or a thread hangs, the
// runtime must end the process while its other threads are still running. But
// the process belongs to the program that started the run, so that program
// decides how it ends.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
#define CHIMERA_RUNTIME_WATCH_ENDPROCESS_H

namespace chimera::runtime {

/// Sets the function that endProcess calls with the exit status. It may run on
/// any thread, without any destructors, and must not return. Set it before a
/// run begins and before a Signals object exists. Without it endProcess calls
/// std::terminate.
void setEndProcess(void (*end)(int status)) noexcept;

/// Ends the process with the function of setEndProcess. Status 1 is a failure;
/// 128 + N is signal N.
[[noreturn]] void endProcess(int status) noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
