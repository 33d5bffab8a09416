//===- Load.cpp - Loading the module for MPI ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Module.h"
#include "runtime/system/LoadModule.h"

using namespace chimera::runtime;

std::unique_ptr<MpiSession> chimera::runtime::loadMpi(MpiThreads threads) {
  auto *start = reinterpret_cast<StartMpi *>(loadModule(
      {kMpiModule, kStartMpi},
      {.missing = "this chimera was built without MPI",
       .needs = "the MPI library that chimera was built with",
       .install = "Install MPI (and, without the module, build again), or run "
                  "with --transport tcp or in one process"}));
  return std::unique_ptr<MpiSession>(start(threads));
}
