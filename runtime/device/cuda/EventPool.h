//===- EventPool.h - Events of CUDA that are used again ---------*- C++ -*-===//
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

/// Making an event costs more than recording one. Events carry no times, which
/// would cost more again. Any thread may use a pool, and drop events after it.
class EventPool {
public:
  /// Of the GPU `ordinal`. `timed` events know when they passed, which takes a
  /// GPU more time.
  explicit EventPool(int ordinal, bool timed = false);

  /// One that nobody else has until the last copy is dropped.
  std::shared_ptr<CUevent_st> take();

private:
  struct Free;
  int ordinal;
  bool timed;
  std::shared_ptr<Free> unused;
};

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_EVENTPOOL_H
