//===- MakeCommunicators.h - Makes communicators ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_NCCL_MAKECOMMUNICATORS_H
#define CHIMERA_TEST_RUNTIME_CUDA_NCCL_MAKECOMMUNICATORS_H

#include "test/runtime/cuda/nccl/Communicators.h"

namespace chimera::runtime::test {

/// This rank's part in making a communicator (ncclCommInitRankConfig), on the
/// thread's current device.
ncclResult_t initialize(ncclComm_t *made, int ranks, const ncclUniqueId &id,
                        int rank, const ncclConfig_t *config);

/// This rank's part in splitting a communicator (ncclCommSplit).
ncclResult_t split(Member &member, int color, int key, ncclComm_t *made,
                   const ncclConfig_t *config);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_MAKECOMMUNICATORS_H
