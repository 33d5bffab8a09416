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

/// A pool of CUDA events. They are reused, because to create an event costs
/// more than to record it. Any thread may use a pool. Events may live longer
/// than the pool.
class EventPool {
public:
  /// A pool of events of the GPU `ordinal`. If `timed`, they record the time at
  /// which they pass, which costs the GPU more.
  explicit EventPool(int ordinal, bool timed = false);

  /// Returns an event that nobody else uses. It returns to the pool when its
  /// last copy is dropped.
  std::shared_ptr<CUevent_st> take();

private:
  struct Free;
  int ordinal;
  bool timed;
  std::shared_ptr<Free> unused;
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_EVENTPOOL_H
