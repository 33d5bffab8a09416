//===- Device.cpp - A GPU that is used through CUDA -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::cuda;

namespace {
int checked(int ordinal) {
  int count = deviceCount();
  if (ordinal < 0 || ordinal >= count)
    throw std::invalid_argument("expected the number of a GPU, from 0 to " +
                                std::to_string(count - 1) + ", got " +
                                std::to_string(ordinal));
  expect(cudaSetDevice(ordinal), "cudaSetDevice");
  return ordinal;
}

std::string nameOf(const DeviceOptions &options) {
  return "GPU " + std::to_string(options.ordinal) +
         (options.user.empty() ? "" : " of " + options.user);
}

/// The alignment of every allocation by CUDA.
constexpr uint64_t kOwnAlignment = 256;

/// Free bytes of the current GPU.
uint64_t unusedNow() {
  size_t left = 0, all = 0;
  expect(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
  return left;
}

/// Whether `done` becomes true within `time`.
template <typename Done>
bool becomesTrueWithin(std::chrono::milliseconds time, const Done &done) {
  Deadline deadline(time);
  for (uint64_t looks = 0; !done(); ++looks) {
    if (deadline.passed())
      return false;
    if (looks < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}
} // namespace

int cuda::deviceCount() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0)
    return count;
  (void)cudaGetLastError();
  const std::string why =
      error == cudaSuccess
          ? ""
          : std::string(" (") + cudaGetErrorString(error) + ")";
  throw std::runtime_error(
      "expected a GPU that CUDA can use, got none" + why +
      ": check its driver (nvidia-smi) and CUDA_VISIBLE_DEVICES");
}

CudaDevice::CudaDevice(DeviceOptions given)
    : options(std::move(given)), ownKernels(checked(options.ordinal)),
      events(options.ordinal), timedEvents(options.ordinal, /*timed=*/true),
      freeAtOpen(unusedNow()) {}

CudaDevice::~CudaDevice() {
  progress = nullptr;
  constexpr std::chrono::seconds kPatience(2);
  auto isDone = [&] {
    return std::ranges::all_of(keptStreams, [](cudaStream_t stream) {
      return cudaStreamQuery(stream) != cudaErrorNotReady;
    });
  };
  // If a stream is still in use, free nothing: the process is about to end.
  if (!becomesTrueWithin(kPatience, isDone))
    return;
  for (cudaStream_t stream : keptStreams)
    (void)cudaStreamDestroy(stream);
  for (const Memory &taken : keptMemory)
    freeNow(taken);
}

void CudaDevice::setListener(std::optional<Listener> listener) {
  progress = nullptr;
  if (listener)
    progress = std::make_unique<Progress>(std::move(*listener),
                                          [this](const Event &event) {
                                            try {
                                              // Make this GPU the current one
                                              // first. Otherwise CUDA would
                                              // open the first GPU for the
                                              // calling thread.
                                              makeCurrent();
                                              return isDone(event);
                                            } catch (...) {
                                              fail(std::current_exception());
                                              throw;
                                            }
                                          });
}

void CudaDevice::setInstruction(uint64_t newStep, uint32_t newInstruction) {
  step = newStep;
  instruction = newInstruction;
}

void CudaDevice::makeCurrent() const {
  expect(cudaSetDevice(options.ordinal), "cudaSetDevice");
}

Block CudaDevice::take(uint64_t bytes, uint64_t alignment, bool onHost) {
  expectNoFailure();
  makeCurrent();
  uint64_t wanted = blockBytes(bytes, alignment);
  uint64_t more = alignment > kOwnAlignment ? alignment - kOwnAlignment : 0;
  if (wanted > UINT64_MAX - more)
    throw std::bad_alloc();
  void *taken = nullptr;
  if (onHost)
    expect(cudaHostAlloc(&taken, wanted + more, cudaHostAllocPortable),
           "cudaHostAlloc");
  else
    expect(cudaMalloc(&taken, wanted + more), "cudaMalloc");
  auto *begin = static_cast<std::byte *>(taken);
  uint64_t over = reinterpret_cast<uintptr_t>(begin) % alignment;
  std::byte *aligned = over == 0 ? begin : begin + (alignment - over);
  memory[aligned] = {begin, onHost};
  return Block(aligned, FreeMemory{this});
}

Block CudaDevice::allocate(uint64_t bytes, uint64_t alignment) {
  return take(bytes, alignment, options.worksOnHost);
}

Block CudaDevice::allocateHost(uint64_t bytes) {
  return take(bytes, kBlockAlignment, true);
}

void CudaDevice::free(std::byte *address) noexcept {
  auto found = memory.find(address);
  if (found == memory.end())
    return;
  Memory taken = found->second;
  memory.erase(found);
  // Do not free memory after a failure: to free memory waits for the operations
  // on the device.
  if (hasFailed || std::uncaught_exceptions() > 0)
    keptMemory.push_back(taken);
  else
    freeNow(taken);
}

void CudaDevice::freeNow(const Memory &taken) noexcept {
  (void)cudaSetDevice(options.ordinal);
  (void)(taken.isOnHost ? cudaFreeHost(taken.begin) : cudaFree(taken.begin));
}

std::optional<uint64_t> CudaDevice::allocatedBytes() {
  if (options.worksOnHost || ranks > 1)
    return std::nullopt;
  makeCurrent();
  return freeAtOpen - std::min(freeAtOpen, unusedNow());
}

std::unique_ptr<Queue> CudaDevice::makeQueue(const std::string &) {
  expectNoFailure();
  makeCurrent();
  return std::make_unique<CudaQueue>(*this, /*isMain=*/true);
}

Event CudaDevice::record(cudaStream_t stream, uint32_t queue, bool timed) {
  expectNoFailure();
  std::shared_ptr<CUevent_st> event = (timed ? timedEvents : events).take();
  expect(cudaEventRecord(event.get(), stream), "cudaEventRecord");
  return {queue, ++position, std::move(event)};
}

static cudaEvent_t eventOf(const Event &event) {
  return static_cast<cudaEvent_t>(const_cast<void *>(event.handle.get()));
}

void CudaDevice::wait(cudaStream_t stream, const Event &event) {
  if (event.handle)
    expect(cudaStreamWaitEvent(stream, eventOf(event), 0),
           "cudaStreamWaitEvent");
}

bool CudaDevice::isDone(Event event) {
  expectNoFailure();
  if (!event.handle)
    return true;
  cudaError_t state = cudaEventQuery(eventOf(event));
  if (state == cudaErrorNotReady)
    return false;
  expect(state, "cudaEventQuery");
  // An operation before the event may have failed, so check for a failure now.
  expectNoFailure();
  return true;
}

void CudaDevice::waitFor(Event event, std::chrono::milliseconds timeout) {
  if (isDone(event))
    return;
  ++blockingWaits;
  if (!becomesTrueWithin(timeout, [&] { return isDone(event); }))
    fail(std::make_exception_ptr(
        WaitError(WaitError::Reason::TimedOut,
                  timeoutMessage(timeout, nameOf(options)))));
  expectNoFailure();
}

int64_t CudaDevice::nanosecondsBetween(const Event &from, const Event &to) {
  if (!from.handle || !to.handle)
    throw std::logic_error("expected points of queues that were timed");
  float milliseconds = 0;
  expect(cudaEventElapsedTime(&milliseconds, eventOf(from), eventOf(to)),
         "cudaEventElapsedTime");
  return std::llround(double{milliseconds} * 1e6);
}

HostBytes CudaDevice::readBack(ConstBytes bytes, Event event,
                               std::chrono::milliseconds timeout) {
  waitFor(event, timeout);
  if (options.worksOnHost)
    return bytes;
  Block copy = makeBlock(bytes.size());
  makeCurrent();
  if (!bytes.empty())
    expect(cudaMemcpy(copy.get(), bytes.data(), bytes.size(),
                      cudaMemcpyDeviceToHost),
           "cudaMemcpy");
  return {std::move(copy), bytes.size()};
}

void CudaDevice::fail(std::exception_ptr reason) noexcept {
  std::lock_guard lock(mutex);
  if (!failure)
    failure = std::move(reason);
  hasFailed = true;
}

void CudaDevice::expectNoFailure() {
  if (!hasFailed)
    return;
  std::lock_guard lock(mutex);
  std::rethrow_exception(failure);
}

namespace {
class SameAddresses final : public AddressMap {
  const std::byte *find(ConstBytes bytes) const override {
    return bytes.data();
  }
};

thread_local const LaunchContext *currentContext = nullptr;
} // namespace

LaunchContext cuda::launchContext() {
  if (!currentContext)
    throw std::logic_error("expected a call by the work of a queue");
  return *currentContext;
}

/// Calls work whose own kernels go to `stream`.
void CudaDevice::call(const Queue::Work &work, cudaStream_t stream) const {
  const LaunchContext here{ownKernels, stream};
  struct Around {
    const LaunchContext *outer = currentContext;
    ~Around() { currentContext = outer; }
  } around;
  currentContext = &here;
  work(SameAddresses());
}

CudaQueue::CudaQueue(CudaDevice &device, bool isMain)
    : device(device), number(++device.queues), isMain(isMain), ring(device) {
  expect(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking),
         "cudaStreamCreateWithFlags");
}

CudaQueue::~CudaQueue() { finish(); }

void CudaQueue::finish() noexcept {
  if (std::uncaught_exceptions() > 0)
    device.fail(std::make_exception_ptr(std::runtime_error(
        "a queue was destroyed before its operations ended")));
  if (!device.hasFailed) {
    (void)cudaStreamSynchronize(own);
    (void)cudaStreamDestroy(own);
    return;
  }
  // Wait until no host work runs. Work that has not begun sees the failure and
  // does nothing.
  std::lock_guard none(device.working);
  device.keptStreams.push_back(own);
}

void CudaQueue::launch(std::span<const Access>, Work work) {
  device.expectNoFailure();
  if (!device.options.worksOnHost && !device.options.enqueue) {
    std::shared_ptr<void> told;
    if (device.options.streamGuard)
      told = device.options.streamGuard(own);
    device.call(work, own);
    return;
  }
  auto later = [&device = device, work = std::move(work)] {
    std::lock_guard lock(device.working);
    if (device.hasFailed)
      return;
    try {
      device.call(work, nullptr);
    } catch (...) {
      device.fail(std::current_exception());
    }
  };
  if (device.options.enqueue)
    return device.options.enqueue(own, std::move(later));
  auto data = std::make_unique<decltype(later)>(std::move(later));
  expect(cudaLaunchHostFunc(
             own,
             [](void *given) {
               const std::unique_ptr<decltype(later)> now(
                   static_cast<decltype(later) *>(given));
               (*now)();
             },
             data.get()),
         "cudaLaunchHostFunc");
  data.release();
}

// For host memory, CUDA's own functions for zero and copy would block the host.
void CudaQueue::zero(Bytes bytes) {
  if (device.options.worksOnHost)
    return launch({}, [bytes](const AddressMap &) {
      std::ranges::fill(bytes, std::byte(0));
    });
  device.expectNoFailure();
  if (!bytes.empty())
    expect(cudaMemsetAsync(bytes.data(), 0, bytes.size(), own),
           "cudaMemsetAsync");
}

void CudaQueue::copy(ConstBytes from, Bytes to) {
  if (device.options.worksOnHost)
    return launch({}, [from, to](const AddressMap &) {
      std::ranges::copy(from, to.begin());
    });
  device.expectNoFailure();
  if (!to.empty())
    expect(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDefault,
                           own),
           "cudaMemcpyAsync");
}

void CudaQueue::fold(ElementType type, std::vector<ConstBytes> contributions,
                     Bytes sum) {
  device.expectNoFailure();
  device.ownKernels.fold(own, type, contributions, sum);
}

void CudaQueue::scale(ElementType type, Bytes bytes, double factor) {
  device.expectNoFailure();
  device.ownKernels.scale(own, type, bytes, factor);
}

void CudaQueue::reserveForLoads(uint64_t count, uint64_t bytes) {
  ring.expect(count, bytes);
}

void CudaQueue::loadFromHost(Bytes to, const std::function<void(Bytes)> &fill) {
  if (to.empty())
    return fill(to);
  Bytes host = ring.allocate(to.size());
  fill(host);
  copy(host, to);
  ring.releaseAfter(record());
}

void CudaQueue::readBack(ConstBytes from, Bytes host) { copy(from, host); }

Event CudaQueue::record() {
  Event event = device.record(own, number);
  if (isMain && device.progress)
    device.progress->add(device.step, device.instruction, event);
  return event;
}

Event CudaQueue::recordTime() {
  return device.record(own, number, /*timed=*/true);
}

void CudaQueue::wait(Event event) {
  device.expectNoFailure();
  device.wait(own, event);
}
