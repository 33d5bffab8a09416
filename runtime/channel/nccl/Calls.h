//===- Calls.h - Calls of NCCL that may fail --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H

#include <nccl.h>

namespace chimera::runtime::nccl {

/// Throws std::runtime_error unless `result` is ncclSuccess, or ncclInProgress:
/// how that ends Communicators::settle says. The message names `call` and what
/// NCCL says, of `communicator` where there is one.
void expect(ncclResult_t result, const char *call,
            ncclComm_t communicator = nullptr);

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_CALLS_H
