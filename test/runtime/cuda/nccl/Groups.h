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
/// Ends a group. If it is the outermost one, launches this thread's calls in
/// it, or none if there is a fault. Fails if there is no group.
ncclResult_t endGroup(ncclResult_t fault);

/// Adds a request to this thread's group, or launches it if there is none.
ncclResult_t post(ncclComm_t handle, Request request);

/// Frees an aborted communicator at the end of this thread's group or, if there
/// is none, now.
void freeAborted(std::shared_ptr<Member> member);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_GROUPS_H
