//===- Events.cpp - Events, and the points of streams that they record ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/CudaCall.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/SoftwareGpu.h"

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
std::shared_ptr<Event> find(cudaEvent_t handle) {
  std::shared_lock lock(gpu().mutex);
  auto found = gpu().events.find(handle);
  return found == gpu().events.end() ? nullptr : found->second;
}

std::string nameOf(cudaEvent_t handle) {
  std::shared_ptr<Event> event = find(handle);
  return event ? text("event ", event->number) : "event ?";
}
} // namespace

size_t test::liveEvents() {
  std::shared_lock lock(gpu().mutex);
  return gpu().events.size();
}

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned flags) {
  uint32_t number = newNumber("event");
  return call(
      "cudaEventCreateWithFlags", [&] { return text("event ", number); },
      [&] {
        std::shared_ptr<Event> event(new Event{number, flags, currentDevice});
        *made = reinterpret_cast<cudaEvent_t>(event.get());
        std::unique_lock lock(gpu().mutex);
        gpu().events[*made] = std::move(event);
        return cudaSuccess;
      });
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return callEvenAfterFailure(
      "cudaEventDestroy", [&] { return nameOf(handle); },
      [&] {
        std::unique_lock lock(gpu().mutex);
        return gpu().events.erase(handle) ? cudaSuccess
                                          : cudaErrorInvalidResourceHandle;
      });
}
cudaError_t cudaEventRecord(cudaEvent_t eventHandle, cudaStream_t handle) {
  return call(
      "cudaEventRecord",
      [&] { return nameOf(eventHandle) + " " + nameOf(handle); },
      [&] {
        std::shared_ptr<Stream> stream;
        std::shared_ptr<Event> event = find(eventHandle);
        if (!event || event->device != deviceOf(handle) ||
            !find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        Point *point;
        {
          std::unique_lock lock(gpu().mutex);
          point = &gpu().points.emplace_back();
        }
        {
          std::lock_guard lock(event->mutex);
          event->point = point;
        }
        put(stream, [point] { point->pass(); });
        return cudaSuccess;
      });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return callUnrecorded("cudaEventQuery", [&] {
    std::shared_ptr<Event> event = find(handle);
    if (!event)
      return cudaErrorInvalidResourceHandle;
    Point *point = event->now();
    return !point || point->passed.reached() ? failure() : cudaErrorNotReady;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call(
      "cudaEventSynchronize", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Event> event = find(handle);
        if (!event)
          return cudaErrorInvalidResourceHandle;
        if (Point *point = event->now())
          point->passed.wait();
        return failure();
      });
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from,
                                 cudaEvent_t to) {
  return callUnrecorded("cudaEventElapsedTime", [&] {
    Point *points[2];
    for (int i = 0; i < 2; ++i) {
      std::shared_ptr<Event> event = find(i == 0 ? from : to);
      if (!event || (event->flags & cudaEventDisableTiming) ||
          !(points[i] = event->now()))
        return cudaErrorInvalidResourceHandle;
      if (!points[i]->passed.reached())
        return cudaErrorNotReady;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(points[1]->time -
                                                             points[0]->time)
                        .count();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t eventHandle,
                                unsigned) {
  return call(
      "cudaStreamWaitEvent",
      [&] { return nameOf(handle) + " " + nameOf(eventHandle); },
      [&] {
        std::shared_ptr<Stream> stream;
        std::shared_ptr<Event> event = find(eventHandle);
        if (!find(handle, stream) || !event)
          return cudaErrorInvalidResourceHandle;
        if (Point *point = event->now())
          put(stream, [point] { point->passed.wait(); });
        return cudaSuccess;
      });
}

} // extern "C"
