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

/// Where a rank computes with several threads, makes those of OpenMP sleep
/// rather than spin while they wait: spinning ones steal the cores that others
/// compute on, which made a step fifty times slower on a busy machine. OpenMP
/// reads its settings when it is loaded, so the process starts itself again,
/// once, unless the user has chosen (OMP_WAIT_POLICY). Call it before there is
/// anything to lose: a pipe that has been read is empty the second time.
void letThreadsSleep(uint32_t threads);

} // namespace chimera

#endif // CHIMERA_TOOLS_RESTART_H
