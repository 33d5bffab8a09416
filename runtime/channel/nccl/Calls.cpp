//===- Calls.cpp - Errors of NCCL calls -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Calls.h"

#include <stdexcept>
#include <string>

void chimera::runtime::nccl::expect(ncclResult_t result, const char *call,
                                    ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress)
    return;
  std::string message =
      std::string("NCCL failed: ") + call + ": " + ncclGetErrorString(result);
  const char *more = ncclGetLastError(communicator);
  if (more && *more)
    message += std::string(": ") + more;
  throw std::runtime_error(message);
}
