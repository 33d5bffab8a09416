//===- Start.h - What every tool does first ---------------------*- C++ -*-===//
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

/// Makes that what a tool writes is either written or an error. To be called
/// before anything is opened and any thread starts. A standard stream that is
/// closed is opened on /dev/null, or the next file would get its number and, in
/// between its own content, what the tool says; what is written to such a
/// standard output fails. A file that grows beyond the limit (`ulimit -f`) is
/// an error like a full disk, not a signal. Returns whether standard output was
/// open.
inline bool guardOutputs() {
  // Not ignored: LLVM's handler would replace that.
  sigset_t tooLarge;
  sigemptyset(&tooLarge);
  sigaddset(&tooLarge, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &tooLarge, nullptr);
  bool hasOutput = true;
  // Each open takes the lowest number that is free.
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
