//===- EventPool.h - CUDA events that are reused ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_EVENTPOOL_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_EVENTPOOL_H

#include <cuda_runtime_api.h>

#include <memory>

namespace chimera::runtime::cuda {

/// A pool of CUDA events, because to create an event costs more than to record
/// one. Any thread may use a pool. Events may be dropped after the pool.
class EventPool {
public:
  /// Events of the GPU `ordinal`. If `timed`, they record the time at which
  /// they pass, which costs the GPU more.
  explicit EventPool(int ordinal, bool timed = false);

  /// An event for exclusive use until its last copy is dropped.
  std::shared_ptr<CUevent_st> take();

private:
  struct Free;
  int ordinal;
  bool timed;
  std::shared_ptr<Free> unused;
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_EVENTPOOL_H
