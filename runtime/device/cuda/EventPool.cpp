//===- EventPool.cpp - CUDA events that are reused ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/EventPool.h"

#include "runtime/device/cuda/Calls.h"

#include <mutex>
#include <vector>

using namespace chimera::runtime::cuda;

struct EventPool::Free {
  std::mutex mutex; ///< protects the other members
  std::vector<cudaEvent_t> events;

  ~Free() {
    for (cudaEvent_t event : events)
      (void)cudaEventDestroy(event);
  }
};

EventPool::EventPool(int ordinal, bool timed)
    : ordinal(ordinal), timed(timed), unused(std::make_shared<Free>()) {}

std::shared_ptr<CUevent_st> EventPool::take() {
  cudaEvent_t event = nullptr;
  {
    std::lock_guard lock(unused->mutex);
    if (!unused->events.empty()) {
      event = unused->events.back();
      unused->events.pop_back();
    }
  }
  if (!event) {
    expect(cudaSetDevice(ordinal), "cudaSetDevice");
    expect(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault
                                                  : cudaEventDisableTiming),
           "cudaEventCreateWithFlags");
  }
  return {event, [unused = unused](cudaEvent_t dropped) {
            std::lock_guard lock(unused->mutex);
            unused->events.push_back(dropped);
          }};
}
