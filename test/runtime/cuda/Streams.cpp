//===- Streams.cpp - Streams: FIFOs that threads execute ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Streams.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/CudaCall.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

void Stream::put(std::function<void()> work) {
  std::lock_guard lock(mutex);
  last->work = std::move(work);
  last = last->next = new Item;
  ++count;
  puts.raise();
}

bool Stream::isIdle() {
  std::lock_guard lock(mutex);
  return done.reached(count);
}

void Stream::waitUntilIdle() {
  uint32_t all;
  {
    std::lock_guard lock(mutex);
    all = count;
  }
  done.wait(all);
}

void Stream::pause() {
  // Acquire: after the hold, this thread must see all writes that other threads
  // made during the hold.
  while (gpu().isHeld.load(std::memory_order_acquire))
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  if (isDelayed && random() % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
}

void Stream::run() {
  for (uint32_t position = 1; !hasEnded(); ++position) {
    puts.wait(position);
    if (next->work) {
      pause();
      next->work();
    } else {
      ended.store(true, std::memory_order_relaxed);
    }
    delete std::exchange(next, next->next);
    done.raise();
  }
}

bool test::find(cudaStream_t handle, std::shared_ptr<Stream> &stream) {
  if (!handle)
    return true;
  std::shared_lock lock(gpu().mutex);
  auto found = gpu().streams.find(handle);
  if (found == gpu().streams.end())
    return false;
  stream = found->second;
  return true;
}

std::string test::nameOf(cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (!find(handle, stream))
    return "stream ?";
  return text("stream ", stream ? stream->number : 0);
}

int test::deviceOf(cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (!find(handle, stream))
    return -1;
  return stream ? stream->device : currentDevice;
}

void test::put(const std::shared_ptr<Stream> &stream,
               std::function<void()> work) {
  if (stream)
    stream->put(std::move(work));
  else
    work();
}

std::function<void()> test::operation(std::function<void()> work) {
  return [work = std::move(work)] {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (int error = gpu().nextFailure.exchange(cudaSuccess, kRelaxed))
      gpu().failure.store(error, kRelaxed);
    if (!failure())
      work();
  };
}

void test::enqueueOn(cudaStream_t handle, std::function<void()> work) {
  std::shared_ptr<Stream> stream;
  if (find(handle, stream))
    put(stream, operation(std::move(work)));
}

void test::waitForStreams(std::optional<int> device) {
  std::vector<std::shared_ptr<Stream>> all;
  {
    std::shared_lock lock(gpu().mutex);
    all = gpu().destroyed;
    for (auto &[handle, stream] : gpu().streams)
      all.push_back(stream);
  }
  for (const std::shared_ptr<Stream> &stream : all)
    if (!device || stream->device == *device)
      stream->waitUntilIdle();
}

size_t test::liveStreams() {
  std::shared_lock lock(gpu().mutex);
  return gpu().streams.size();
}

static cudaError_t makeStream(cudaStream_t *made, uint32_t number) {
  std::unique_lock lock(gpu().mutex);
  auto stream = std::make_shared<Stream>(number, currentDevice, gpu().seed);
  std::thread([stream] { stream->run(); }).detach();
  *made = reinterpret_cast<cudaStream_t>(stream.get());
  gpu().streams[*made] = std::move(stream);
  std::erase_if(gpu().destroyed, [](auto &old) { return old->hasEnded(); });
  return cudaSuccess;
}

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned) {
  uint32_t number = newNumber("stream");
  return call(
      "cudaStreamCreateWithFlags", [&] { return text("stream ", number); },
      [&] { return makeStream(made, number); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *made, unsigned, int) {
  uint32_t number = newNumber("stream");
  return call(
      "cudaStreamCreateWithPriority", [&] { return text("stream ", number); },
      [&] { return makeStream(made, number); });
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return callEvenAfterFailure(
      "cudaStreamDestroy", [&] { return nameOf(handle); },
      [&] {
        std::unique_lock lock(gpu().mutex);
        auto found = gpu().streams.find(handle);
        if (found == gpu().streams.end())
          return cudaErrorInvalidResourceHandle;
        found->second->put(nullptr);
        gpu().destroyed.push_back(std::move(found->second));
        gpu().streams.erase(found);
        return cudaSuccess;
      });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call(
      "cudaStreamSynchronize", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        if (stream)
          stream->waitUntilIdle();
        return failure();
      });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return callUnrecorded("cudaStreamQuery", [&] {
    std::shared_ptr<Stream> stream;
    if (!find(handle, stream))
      return cudaErrorInvalidResourceHandle;
    return !stream || stream->isIdle() ? failure() : cudaErrorNotReady;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                               void *data) {
  return call(
      "cudaLaunchHostFunc", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        put(stream, operation([=] {
              isInHostFunction = true;
              function(data);
              isInHostFunction = false;
            }));
        return cudaSuccess;
      });
}

} // extern "C"
