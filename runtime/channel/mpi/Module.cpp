//===- Module.cpp - Entry point of the module for MPI ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Module.h"

using namespace chimera::runtime;

extern "C" __attribute__((visibility("default"))) MpiSession *
chimeraStartMpi1(MpiThreads threads) {
  return startMpi(threads).release();
}
