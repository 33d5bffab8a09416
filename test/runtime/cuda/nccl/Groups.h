//===- Groups.h - What a thread calls within a group ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_NCCL_GROUPS_H
#define CHIMERA_TEST_RUNTIME_CUDA_NCCL_GROUPS_H

#include "test/runtime/cuda/nccl/Communicators.h"

namespace chimera::runtime::test {

/// Whether this thread is between ncclGroupStart and ncclGroupEnd.
bool isInGroup();

void startGroup();
/// Launches what this thread has called in the group, if it is the outermost
/// one; nothing where there is a fault. Fails if there is no group.
ncclResult_t endGroup(ncclResult_t fault);

/// Makes a request part of this thread's group, or launches it.
ncclResult_t post(ncclComm_t handle, Request request);

/// Frees a communicator that was aborted, at the end of this thread's group or,
/// without one, now.
void freeAborted(std::shared_ptr<Member> member);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_GROUPS_H
