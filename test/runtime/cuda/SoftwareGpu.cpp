//===- SoftwareGpu.cpp - CUDA and NVRTC without a GPU ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ThreadSanitizer takes every mutex for an order, and every count of a
// shared_ptr. So no thread of a stream locks what others lock or shares such a
// pointer with the host: it takes its work from a list, whose ends only a
// Signal connects, and all it reads besides are relaxed atomics.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/SoftwareGpu.h"

#include <linux/futex.h>
#include <nvrtc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

void Signal::sleep(uint32_t seen, const std::chrono::microseconds *time) const {
  timespec most{};
  if (time)
    most = {static_cast<time_t>(time->count() / 1000000),
            static_cast<long>(time->count() % 1000000 * 1000)};
  syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, seen, time ? &most : nullptr,
          nullptr, 0);
}

void Signal::raise() {
  count.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Signal::reached(uint32_t wanted) const {
  // Who finds that it has not been reached is to learn nothing.
  return count.load(std::memory_order_relaxed) >= wanted &&
         count.load(std::memory_order_acquire) >= wanted;
}

void Signal::wait(uint32_t wanted) const {
  for (uint32_t seen; (seen = count.load(std::memory_order_relaxed)) < wanted;)
    sleep(seen, nullptr);
  (void)count.load(std::memory_order_acquire);
}

bool Signal::waitFor(std::chrono::microseconds time, uint32_t wanted) const {
  uint32_t seen = count.load(std::memory_order_relaxed);
  if (seen < wanted)
    sleep(seen, &time);
  return reached(wanted);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

namespace {
/// A point of a stream.
struct Point {
  Signal passed;
  std::chrono::steady_clock::time_point time = {};

  void pass() {
    time = std::chrono::steady_clock::now();
    passed.raise();
  }
};

/// A FIFO and the thread that executes it.
class Stream {
public:
  Stream(uint32_t number, int device, uint64_t seed)
      : number(number), device(device), isDelayed(seed != 0),
        random(seed + number) {}
  ~Stream() { delete next; }

  const uint32_t number;
  const int device;

  /// Nothing: there comes no more.
  void put(std::function<void()> work);
  bool isIdle();
  void waitUntilIdle();
  void run();
  bool hasEnded() const { return ended.load(std::memory_order_relaxed); }

private:
  struct Item {
    std::function<void()> work = {};
    Item *next = nullptr;
  };
  void pause();

  std::mutex mutex; ///< of those who put: guards these
  Item *last = new Item;
  uint32_t count = 0;

  // The thread's.
  Item *next = last;
  const bool isDelayed;
  std::minstd_rand random;

  Signal puts, done;
  std::atomic<bool> ended{false};
};

struct Event {
  const uint32_t number;
  const unsigned flags;
  const int device;
  std::mutex mutex = {}; ///< guards the point
  Point *point = nullptr;

  Point *now() {
    std::lock_guard lock(mutex);
    return point;
  }
};

constexpr int kHost = -1;
struct Allocation {
  size_t bytes;
  int device; ///< or kHost
};

constexpr int kDevices = 8;
constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr int kCapability = 90;

struct Fault {
  std::string name;
  int error;
  int after;
};

struct Gpu {
  std::shared_mutex mutex; ///< guards these
  int devices = kDevices;
  size_t memoryBytes = kMemoryBytes;
  int capability = kCapability;
  uint64_t seed = 1;
  std::unordered_map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Stream>> destroyed; ///< that may not have ended
  std::unordered_map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<const std::byte *, Allocation> memory; ///< by its beginning
  std::set<std::pair<int, const void *>> loaded;  ///< kernels, by device
  std::deque<Point> points; ///< all since the last reset() without streams

  std::mutex callsMutex; ///< guards these
  std::map<std::string, uint32_t> numbers;
  std::vector<std::string> calls;
  std::vector<Fault> faults;

  std::atomic<bool> isHeld{false}, isRecording{false}, hasFaults{false},
      sharesDevices{false};
  std::atomic<int> nextFailure{cudaSuccess}, failure{cudaSuccess};
};

Gpu &gpu() {
  static Gpu *all = new Gpu; // threads may outlive main
  return *all;
}

thread_local int currentDevice = 0;
thread_local cudaError_t lastError = cudaSuccess;
thread_local bool isInHostFunction = false;

cudaError_t failure() {
  return static_cast<cudaError_t>(
      gpu().failure.load(std::memory_order_relaxed));
}

/// What uses memory, on the stream: not after a failure.
std::function<void()> operation(std::function<void()> work) {
  return [work = std::move(work)] {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (int error = gpu().nextFailure.exchange(cudaSuccess, kRelaxed))
      gpu().failure.store(error, kRelaxed);
    if (!failure())
      work();
  };
}

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
  // Knows what was done while it was held.
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

/// Whether it is a stream; no object for the default stream.
bool find(cudaStream_t handle, std::shared_ptr<Stream> &stream) {
  if (!handle)
    return true;
  std::shared_lock lock(gpu().mutex);
  auto found = gpu().streams.find(handle);
  if (found == gpu().streams.end())
    return false;
  stream = found->second;
  return true;
}

std::shared_ptr<Event> find(cudaEvent_t handle) {
  std::shared_lock lock(gpu().mutex);
  auto found = gpu().events.find(handle);
  return found == gpu().events.end() ? nullptr : found->second;
}

std::string nameOf(cudaEvent_t handle) {
  std::shared_ptr<Event> event = find(handle);
  return event ? text("event ", event->number) : "event ?";
}

void put(const std::shared_ptr<Stream> &stream, std::function<void()> work) {
  if (stream)
    stream->put(std::move(work));
  else
    work();
}

/// Waits for all that is on streams, of one device or of any.
void waitForStreams(std::optional<int> device = {}) {
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

/// Where memory lies, if all of it is in one allocation or in none.
struct Where {
  enum { Pageable, Pinned, OnDevice, Nowhere } kind;
  int device = kHost;
};
Where where(const void *memory, size_t bytes) {
  auto *begin = static_cast<const std::byte *>(memory);
  std::shared_lock lock(gpu().mutex);
  auto after = gpu().memory.upper_bound(begin);
  if (after == gpu().memory.begin())
    return {Where::Pageable};
  auto &[start, allocation] = *std::prev(after);
  auto offset = static_cast<size_t>(begin - start);
  if (offset >= allocation.bytes)
    return {Where::Pageable};
  if (bytes > allocation.bytes - offset)
    return {Where::Nowhere};
  return {allocation.device == kHost ? Where::Pinned : Where::OnDevice,
          allocation.device};
}

/// Makes a call of CUDA, unless it is not to be made.
template <typename Body>
cudaError_t make(int fault, const Body &body, bool evenAfterFailure = false) {
  auto error = static_cast<cudaError_t>(fault);
  if (!error && isInHostFunction)
    error = cudaErrorNotPermitted;
  if (!error && !evenAfterFailure)
    error = failure();
  if (!error)
    error = body();
  if (!error && evenAfterFailure)
    error = failure();
  if (error)
    lastError = error;
  return error;
}
template <typename Detail, typename Body>
cudaError_t call(const char *name, const Detail &detail, const Body &body) {
  return make(beginCall(name, detail), body);
}
/// One that gives something back, which it does even after a failure.
template <typename Detail, typename Body>
cudaError_t drop(const char *name, const Detail &detail, const Body &body) {
  return make(beginCall(name, detail), body, true);
}
/// One that is not recorded.
template <typename Body> cudaError_t ask(const char *name, const Body &body) {
  return make(faultOf(name), body);
}

std::string nothing() { return {}; }

cudaError_t allocate(void **memory, size_t bytes, int device) {
  *memory = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  std::unique_lock lock(gpu().mutex);
  if (device != kHost) {
    size_t used = 0;
    for (auto &[begin, allocation] : gpu().memory)
      used += allocation.device == device ? allocation.bytes : 0;
    if (bytes > gpu().memoryBytes - used)
      return cudaErrorMemoryAllocation;
  }
  if (posix_memalign(memory, 512, bytes) != 0)
    return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xA5, bytes);
  gpu().memory[static_cast<std::byte *>(*memory)] = {bytes, device};
  return cudaSuccess;
}

/// Frees memory of the host, or of any device.
cudaError_t release(void *memory, bool onHost) {
  if (!memory)
    return cudaSuccess;
  auto *begin = static_cast<std::byte *>(memory);
  auto find = [&] {
    auto found = gpu().memory.find(begin);
    return found != gpu().memory.end() &&
                   (found->second.device == kHost) == onHost
               ? std::optional(found->second)
               : std::nullopt;
  };
  std::optional<Allocation> allocation;
  {
    std::shared_lock lock(gpu().mutex);
    allocation = find();
  }
  if (!allocation)
    return cudaErrorInvalidValue;
  // Of the host's, CUDA does not say that it waits.
  if (!onHost)
    waitForStreams(allocation->device);
  std::unique_lock lock(gpu().mutex);
  if (gpu().memory.erase(begin) == 0)
    return cudaErrorInvalidValue;
  std::memset(memory, 0xDD, allocation->bytes);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t makeStream(cudaStream_t *made, uint32_t number) {
  std::unique_lock lock(gpu().mutex);
  auto stream = std::make_shared<Stream>(number, currentDevice, gpu().seed);
  std::thread([stream] { stream->run(); }).detach();
  *made = reinterpret_cast<cudaStream_t>(stream.get());
  gpu().streams[*made] = std::move(stream);
  std::erase_if(gpu().destroyed, [](auto &old) { return old->hasEnded(); });
  return cudaSuccess;
}

cudaError_t deviceError(int device) {
  std::shared_lock lock(gpu().mutex);
  return gpu().devices == 0                      ? cudaErrorNoDevice
         : device < 0 || device >= gpu().devices ? cudaErrorInvalidDevice
                                                 : cudaSuccess;
}

struct ErrorText {
  cudaError_t error;
  const char *name;
  const char *text;
};
constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError",
     "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage",
     "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
     "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound",
     "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure",
     "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
};
const ErrorText &textOf(cudaError_t error) {
  static constexpr ErrorText kOther = {cudaErrorUnknown, "cudaErrorUnknown",
                                       "unknown error"};
  auto *found = std::ranges::find(kErrorTexts, error, &ErrorText::error);
  return found == std::end(kErrorTexts) ? kOther : *found;
}
} // namespace

//===----------------------------------------------------------------------===//
// For tests
//===----------------------------------------------------------------------===//

void test::reset() {
  hold(false);
  if (failure())
    waitForStreams();
  for (;;) {
    std::unique_lock lock(gpu().mutex);
    std::erase_if(gpu().destroyed, [](auto &old) { return old->hasEnded(); });
    if (gpu().destroyed.empty()) {
      if (gpu().streams.empty() && gpu().events.empty())
        gpu().points.clear();
      break;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  setDevices(kDevices, kMemoryBytes);
  {
    std::unique_lock lock(gpu().mutex);
    gpu().loaded.clear();
  }
  allowSharedDevices(false);
  setDelays(1);
  recordCalls(false);
  std::lock_guard lock(gpu().callsMutex);
  gpu().numbers.clear();
  gpu().calls.clear();
  gpu().faults.clear();
  gpu().hasFaults = false;
  gpu().nextFailure = gpu().failure = cudaSuccess;
  lastError = cudaSuccess;
  currentDevice = 0;
}

void test::setDevices(int count, size_t memoryBytes, int capability) {
  std::unique_lock lock(gpu().mutex);
  gpu().devices = count;
  gpu().memoryBytes = memoryBytes;
  gpu().capability = capability;
}

void test::allowSharedDevices(bool allow) { gpu().sharesDevices = allow; }
bool test::sharesDevices() { return gpu().sharesDevices; }

void test::setDelays(uint64_t seed) {
  std::unique_lock lock(gpu().mutex);
  gpu().seed = seed;
}

void test::recordCalls(bool record) { gpu().isRecording = record; }
bool test::isRecording() {
  return gpu().isRecording.load(std::memory_order_relaxed);
}
void test::record(std::string call) {
  std::lock_guard lock(gpu().callsMutex);
  gpu().calls.push_back(std::move(call));
}
std::vector<std::string> test::calls() {
  std::lock_guard lock(gpu().callsMutex);
  return gpu().calls;
}
void test::clearCalls() {
  std::lock_guard lock(gpu().callsMutex);
  gpu().calls.clear();
}

void test::failCall(const std::string &name, int error, int after) {
  std::lock_guard lock(gpu().callsMutex);
  gpu().faults.push_back({name, error, after});
  gpu().hasFaults = true;
}
int test::faultOf(const char *name) {
  if (!gpu().hasFaults.load(std::memory_order_relaxed))
    return 0;
  std::lock_guard lock(gpu().callsMutex);
  for (Fault &fault : gpu().faults)
    if (fault.name == name && fault.after-- == 0) {
      int error = fault.error;
      gpu().faults.erase(gpu().faults.begin() + (&fault - &gpu().faults[0]));
      gpu().hasFaults = !gpu().faults.empty();
      return error;
    }
  return 0;
}

void test::failExecution(cudaError_t error) { gpu().nextFailure = error; }
bool test::hasFailed() { return failure() != cudaSuccess; }
bool test::inHostFunction() { return isInHostFunction; }

void test::hold(bool held) {
  gpu().isHeld.store(held, std::memory_order_release);
}

void test::putOn(cudaStream_t handle, std::function<void()> work) {
  std::shared_ptr<Stream> stream;
  if (find(handle, stream))
    put(stream, operation(std::move(work)));
}

uint32_t test::newNumber(const std::string &kind) {
  std::lock_guard lock(gpu().callsMutex);
  return ++gpu().numbers[kind];
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

bool test::isInReach(int device, const void *memory, size_t bytes) {
  Where at = where(memory, bytes);
  return at.kind == Where::Pinned ||
         (at.kind == Where::OnDevice && at.device == device);
}

static size_t live(bool onHost) {
  std::shared_lock lock(gpu().mutex);
  return static_cast<size_t>(
      std::ranges::count_if(gpu().memory, [&](const auto &allocation) {
        return (allocation.second.device == kHost) == onHost;
      }));
}
size_t test::liveAllocations() { return live(false); }
size_t test::liveHostAllocations() { return live(true); }
size_t test::liveStreams() {
  std::shared_lock lock(gpu().mutex);
  return gpu().streams.size();
}
size_t test::liveEvents() {
  std::shared_lock lock(gpu().mutex);
  return gpu().events.size();
}

namespace {
/// A program of NVRTC.
struct Program {
  bool isCompiled = false;
  std::string log;
};
Program &programOf(nvrtcProgram handle) {
  return *reinterpret_cast<Program *>(handle);
}
} // namespace

//===----------------------------------------------------------------------===//
// CUDA
//===----------------------------------------------------------------------===//

extern "C" {

const char *cudaGetErrorName(cudaError_t error) { return textOf(error).name; }
const char *cudaGetErrorString(cudaError_t error) { return textOf(error).text; }
cudaError_t cudaGetLastError() {
  cudaError_t error = std::exchange(lastError, cudaSuccess);
  return failure() ? failure() : error;
}
cudaError_t cudaPeekAtLastError() { return failure() ? failure() : lastError; }

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  return cudaRuntimeGetVersion(version);
}

cudaError_t cudaGetDeviceCount(int *count) {
  return ask("cudaGetDeviceCount", [&] {
    std::shared_lock lock(gpu().mutex);
    *count = gpu().devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return call(
      "cudaSetDevice", [&] { return text(device); },
      [&] {
        cudaError_t error = deviceError(device);
        if (!error)
          currentDevice = device;
        return error;
      });
}
cudaError_t cudaGetDevice(int *device) {
  return ask("cudaGetDevice", [&] {
    *device = currentDevice;
    return deviceError(currentDevice);
  });
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device) {
  return ask("cudaDeviceGetAttribute", [&] {
    cudaError_t error = deviceError(device);
    std::shared_lock lock(gpu().mutex);
    *value =
        attribute == cudaDevAttrMultiProcessorCount      ? 2
        : attribute == cudaDevAttrComputeCapabilityMajor ? gpu().capability / 10
        : attribute == cudaDevAttrComputeCapabilityMinor ? gpu().capability % 10
        : attribute == cudaDevAttrMaxThreadsPerBlock     ? 1024
        : attribute == cudaDevAttrWarpSize               ? 32
        : attribute == cudaDevAttrPciBusId               ? device + 1
        : attribute == cudaDevAttrUnifiedAddressing      ? 1
                                                         : 0;
    return error;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  return ask("cudaGetDeviceProperties", [&] {
    cudaError_t error = deviceError(device);
    std::shared_lock lock(gpu().mutex);
    *properties = {};
    std::strcpy(properties->name, "Software GPU");
    properties->uuid.bytes[0] = static_cast<char>(device + 1);
    properties->totalGlobalMem = gpu().memoryBytes;
    properties->major = gpu().capability / 10;
    properties->minor = gpu().capability % 10;
    properties->multiProcessorCount = 2;
    properties->maxThreadsPerBlock = 1024;
    properties->warpSize = 32;
    properties->pciBusID = device + 1;
    properties->unifiedAddressing = 1;
    return error;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
  return ask("cudaDeviceGetPCIBusId", [&] {
    std::snprintf(id, static_cast<size_t>(length), "0000:%02X:00.0",
                  static_cast<unsigned>(device + 1));
    return deviceError(device);
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", nothing, [&] {
    waitForStreams(currentDevice);
    return failure();
  });
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
  return ask("cudaMemGetInfo", [&] {
    std::shared_lock lock(gpu().mutex);
    *left = *all = gpu().memoryBytes;
    for (auto &[begin, allocation] : gpu().memory)
      *left -= allocation.device == currentDevice ? allocation.bytes : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return call(
      "cudaMalloc", [&] { return text(bytes); },
      [&] {
        cudaError_t error = deviceError(currentDevice);
        return error ? error : allocate(memory, bytes, currentDevice);
      });
}
cudaError_t cudaFree(void *memory) {
  return drop("cudaFree", nothing, [&] { return release(memory, false); });
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return call(
      "cudaMallocHost", [&] { return text(bytes); },
      [&] { return allocate(memory, bytes, kHost); });
}
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  return call(
      "cudaHostAlloc", [&] { return text(bytes); },
      [&] { return allocate(memory, bytes, kHost); });
}
cudaError_t cudaFreeHost(void *memory) {
  return drop("cudaFreeHost", nothing, [&] { return release(memory, true); });
}

static cudaError_t copy(const char *name, void *to, const void *from,
                        size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t handle) {
  const Where source = where(from, bytes), target = where(to, bytes);
  const bool fromDevice = source.kind == Where::OnDevice;
  const bool toDevice = target.kind == Where::OnDevice;
  // As CUDA does, also between all memory of the host.
  const bool blocks =
      handle && !toDevice && !(fromDevice && target.kind == Where::Pinned);
  return call(
      name,
      [&] {
        return text(bytes, fromDevice ? " D2" : " H2", toDevice ? "D " : "H ",
                    nameOf(handle), blocks ? " blocks" : "");
      },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        const cudaMemcpyKind actual =
            fromDevice
                ? toDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost
            : toDevice ? cudaMemcpyHostToDevice
                       : cudaMemcpyHostToHost;
        if (source.kind == Where::Nowhere || target.kind == Where::Nowhere ||
            (kind != cudaMemcpyDefault && kind != actual))
          return cudaErrorInvalidValue;
        std::shared_ptr<std::byte[]> staged;
        if (toDevice && source.kind == Where::Pageable) {
          staged.reset(new std::byte[bytes]);
          std::memcpy(staged.get(), from, bytes);
        }
        put(stream, operation([=, staged = std::move(staged)] {
              std::memcpy(to, staged ? staged.get() : from, bytes);
            }));
        if (blocks)
          stream->waitUntilIdle();
        return blocks || !handle ? failure() : cudaSuccess;
      });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind) {
  return copy("cudaMemcpy", to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                            cudaStream_t handle) {
  return call(
      "cudaMemsetAsync", [&] { return text(bytes, " ", nameOf(handle)); },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!find(handle, stream))
          return cudaErrorInvalidResourceHandle;
        auto kind = where(memory, bytes).kind;
        if (kind == Where::Nowhere || kind == Where::Pageable)
          return cudaErrorInvalidValue;
        put(stream, operation([=] { std::memset(memory, value, bytes); }));
        return cudaSuccess;
      });
}

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
  return drop(
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
  return ask("cudaStreamQuery", [&] {
    std::shared_ptr<Stream> stream;
    if (!find(handle, stream))
      return cudaErrorInvalidResourceHandle;
    return !stream || stream->isIdle() ? failure() : cudaErrorNotReady;
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
  return drop(
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
  return ask("cudaEventQuery", [&] {
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
  return ask("cudaEventElapsedTime", [&] {
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

static const KernelOnHost *kernelOf(const void *handle) {
  for (const KernelOnHost &kernel : kernelsOnHost())
    if (&kernel == handle)
      return &kernel;
  return nullptr;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                  const void *handle) {
  const KernelOnHost *kernel = kernelOf(handle);
  return call(
      "cudaFuncGetAttributes",
      [&] { return text(kernel ? kernel->name : "?"); },
      [&] {
        if (!kernel)
          return cudaErrorInvalidDeviceFunction;
        *attributes = {};
        std::unique_lock lock(gpu().mutex);
        gpu().loaded.emplace(currentDevice, kernel);
        return cudaSuccess;
      });
}

/// Refuses a kernel that has not been asked about on this GPU, which would wait
/// for all that is under way there.
cudaError_t cudaLaunchKernel(const void *handle, dim3 grid, dim3 block,
                             void **arguments, size_t,
                             cudaStream_t streamHandle) {
  const KernelOnHost *kernel = kernelOf(handle);
  return call(
      "cudaLaunchKernel",
      [&] {
        return text(kernel ? kernel->name : "?", " ", nameOf(streamHandle));
      },
      [&] {
        std::shared_ptr<Stream> stream;
        if (!kernel || !find(streamHandle, stream) ||
            deviceOf(streamHandle) != currentDevice)
          return cudaErrorInvalidResourceHandle;
        {
          std::shared_lock lock(gpu().mutex);
          if (!gpu().loaded.contains({currentDevice, kernel}))
            return cudaErrorInvalidDeviceFunction;
        }
        const uint64_t threads = uint64_t{block.x} * block.y * block.z;
        if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 ||
            grid.z == 0)
          return cudaErrorInvalidConfiguration;
        put(stream, operation(kernel->bind(grid, block, arguments)));
        return cudaSuccess;
      });
}

static constexpr char kImage[] = "an image for software GPUs";
/// All libraries are the same.
static int library;

cudaError_t cudaLibraryLoadData(cudaLibrary_t *made, const void *code,
                                cudaJitOption *, void **, unsigned,
                                cudaLibraryOption *, void **, unsigned) {
  return call("cudaLibraryLoadData", nothing, [&] {
    if (std::memcmp(code, kImage, sizeof kImage) != 0)
      return cudaErrorInvalidKernelImage;
    *made = reinterpret_cast<cudaLibrary_t>(&library);
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  return call("cudaLibraryUnload", nothing, [] { return cudaSuccess; });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t *made, cudaLibrary_t,
                                 const char *name) {
  return call(
      "cudaLibraryGetKernel", [&] { return text(name); },
      [&] {
        for (const KernelOnHost &kernel : kernelsOnHost())
          if (std::string(name) == kernel.name) {
            *made = reinterpret_cast<cudaKernel_t>(
                const_cast<KernelOnHost *>(&kernel));
            return cudaSuccess;
          }
        return cudaErrorSymbolNotFound;
      });
}

//===----------------------------------------------------------------------===//
// NVRTC
//===----------------------------------------------------------------------===//

nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
         : result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                             : "NVRTC_ERROR_INTERNAL_ERROR";
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram *made, const char *,
                               const char *name, int, const char *const *,
                               const char *const *) {
  int error = beginCall("nvrtcCreateProgram", [&] { return text(name); });
  if (!error)
    *made = reinterpret_cast<nvrtcProgram>(new Program);
  return static_cast<nvrtcResult>(error);
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count,
                                const char *const *options) {
  int error = beginCall("nvrtcCompileProgram", [&] {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += text(i ? " " : "", options[i]);
    return all;
  });
  programOf(handle).isCompiled = error == 0;
  programOf(handle).log = error ? "error: this is a test" : "";
  return static_cast<nvrtcResult>(error);
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram handle, size_t *bytes) {
  if (int error = faultOf("nvrtcGetCUBINSize"))
    return static_cast<nvrtcResult>(error);
  *bytes = sizeof kImage;
  return programOf(handle).isCompiled ? NVRTC_SUCCESS
                                      : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram handle, char *image) {
  if (int error = faultOf("nvrtcGetCUBIN"))
    return static_cast<nvrtcResult>(error);
  std::memcpy(image, kImage, sizeof kImage);
  return programOf(handle).isCompiled ? NVRTC_SUCCESS
                                      : NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *bytes) {
  *bytes = programOf(handle).log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *log) {
  const std::string &text = programOf(handle).log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle) {
  delete &programOf(*handle);
  *handle = nullptr;
  return NVRTC_SUCCESS;
}

} // extern "C"
