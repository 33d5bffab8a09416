//===- Module.h - Entry point of the module for MPI -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_MODULE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_MODULE_H

#include "runtime/channel/mpi/Session.h"

namespace chimera::runtime {

inline constexpr const char *kMpiModule = "chimera_mpi.so";

/// The name of the module's only function, which is startMpi. The caller owns
/// the result. The name changes whenever the interface between chimera-run and
/// the module changes.
inline constexpr const char *kStartMpi = "chimeraStartMpi1";
using StartMpi = MpiSession *(MpiThreads);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_MODULE_H
