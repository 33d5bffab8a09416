//===- Calls.h - Errors of NCCL calls ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H

#include <nccl.h>

namespace chimera::runtime::nccl {

/// Throws std::runtime_error unless `result` is ncclSuccess or ncclInProgress.
/// Communicators::waitUntilComplete waits for a call in progress. The error
/// names `call` and has NCCL's error text, for `communicator` if one is given.
void expect(ncclResult_t result, const char *call,
            ncclComm_t communicator = nullptr);

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H
