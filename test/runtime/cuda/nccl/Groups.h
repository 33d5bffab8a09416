//===- Groups.h - A thread's calls within a group ---------------*- C++ -*-===//
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
/// Ends a group. If it is the outermost group, launches the calls that this
/// thread made in it. If `fault` is an error, or one of the calls has failed,
/// launches none. Fails if this thread has not started a group.
ncclResult_t endGroup(ncclResult_t fault);

/// Adds a request to this thread's group. Launches it at once if this thread is
/// not in a group.
ncclResult_t post(ncclComm_t handle, Request request);

/// Frees an aborted communicator at the end of this thread's group. Frees it at
/// once if this thread is not in a group.
void freeAborted(std::shared_ptr<Member> member);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_GROUPS_H
