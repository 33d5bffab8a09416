//===- PassiveOpenMP.h - Restart with OpenMP threads that sleep -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_PASSIVEOPENMP_H
#define CHIMERA_TOOLS_PASSIVEOPENMP_H

#include <cstdint>

namespace chimera {

/// Makes OpenMP's threads sleep, not spin, while they wait. OpenMP reads
/// OMP_WAIT_POLICY when it is loaded, so this function sets the variable and
/// starts the program again in this process (execv), once. It does nothing if a
/// rank has fewer than 2 threads (`threads`), or if the user has set
/// OMP_WAIT_POLICY. Spinning threads take cores from other ranks: on a busy
/// machine they made a step fifty times slower. Call this before any input is
/// read, because a pipe can be read only once.
void reexecWithPassiveOpenMP(uint32_t threads);

} // namespace chimera

#endif // CHIMERA_TOOLS_PASSIVEOPENMP_H
