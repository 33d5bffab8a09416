//===- EndProcess.h - How the process ends at once --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a rank of a job fails, a signal tells the process to end, or a thread is
// stuck, the runtime must end the process while other threads of it are at
// work. But the process is not the runtime's: the program that started the run
// says how it ends.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
#define CHIMERA_RUNTIME_WATCH_ENDPROCESS_H

namespace chimera::runtime {

/// Sets what endProcess calls, with the status that it is given: it may run on
/// any thread, past all destructors, and must not return. To be set before a
/// run begins and before there are Signals; std::terminate where it is not.
void onEnd(void (*end)(int status)) noexcept;

/// Ends the process as onEnd says. Status 1 is a failure, 128 + N signal N.
[[noreturn]] void endProcess(int status) noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_ENDPROCESS_H
