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

/// Makes the threads of OpenMP sleep while they wait, instead of spinning.
/// OpenMP reads its settings when it is loaded, so this sets OMP_WAIT_POLICY
/// and starts the process again, once. It does nothing if `threads`, the
/// threads of a rank, are fewer than 2, or if the user has set OMP_WAIT_POLICY.
/// Spinning threads take the cores from other ranks; on a busy machine this
/// made a step fifty times slower. Call it before any input is read: a pipe can
/// be read only once.
void reexecWithPassiveOpenMP(uint32_t threads);

} // namespace chimera

#endif // CHIMERA_TOOLS_PASSIVEOPENMP_H
