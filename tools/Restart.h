//===- Restart.h - Starts the tool again with another setting ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_RESTART_H
#define CHIMERA_TOOLS_RESTART_H

#include <cstdint>

namespace chimera {

/// Starts the process again, once, with the environment variable `name`: for
/// settings that libraries read when they are loaded. Does nothing where the user
/// has chosen, and goes on where it cannot. Call it before there is anything to
/// lose: a pipe that has been read is empty the second time.
void restartWith(const char *name, const char *value);

/// Where a rank computes with several threads, makes those of OpenMP sleep
/// rather than spin while they wait: spinning ones steal the cores that others
/// compute on, which made a step fifty times slower on a busy machine. May
/// restart the process.
void letThreadsSleep(uint32_t threads);

/// Takes memory from the system in large pages and large steps: a module of many
/// ops is gigabytes, and to fault its small pages in took a fifth of the time to
/// compile it. May restart the process.
void useLargePages();

} // namespace chimera

#endif // CHIMERA_TOOLS_RESTART_H
