//===- Launch.h - Launches operations on streams ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_NCCL_LAUNCH_H
#define CHIMERA_TEST_RUNTIME_CUDA_NCCL_LAUNCH_H

#include "test/runtime/cuda/nccl/Communicators.h"

#include <vector>

namespace chimera::runtime::test {

/// Puts the requests of a group on their streams. As in NCCL, they are one
/// operation: none of the streams goes on before all requests are complete.
/// Requires that `member.mutex` is locked.
void launch(Member &member, const std::vector<Request> &requests);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_LAUNCH_H
