//===- Start.h - First steps of every tool ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_START_H
#define CHIMERA_TOOLS_START_H

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace chimera {

/// Ensures that every write of a tool either succeeds or is an error. Call this
/// before any file is opened and any thread starts. Returns whether standard
/// output was open.
/// - A closed standard stream is opened on /dev/null. Otherwise the next opened
///   file would get the stream's number, and messages would be written into
///   that file. A standard output that was closed is opened for reading only,
///   so writes to it fail.
/// - A file that grows beyond the limit of `ulimit -f` is an error, like a full
///   disk, and not a signal.
inline bool guardOutputs() {
  // The signal is blocked and not ignored, because LLVM would replace SIG_IGN
  // by its own handler.
  sigset_t tooLarge;
  sigemptyset(&tooLarge);
  sigaddset(&tooLarge, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &tooLarge, nullptr);
  bool hasOutput = true;
  // Each open returns the lowest free number, so a closed stream gets its own
  // number again.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF)
      continue;
    hasOutput &= stream != STDOUT_FILENO;
    if (open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) !=
        stream)
      std::abort();
  }
  return hasOutput;
}

} // namespace chimera

#endif // CHIMERA_TOOLS_START_H
