//===- Device.h - Memory and queues of a rank -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory and the queues on which a rank computes. The host is the rank's
// thread. It puts operations on the queues of the device and continues. The
// operations of one queue take effect one after another. Operations of two
// queues are ordered only by events. The host does not access memory of the
// device; it copies data through a queue.
//
// Implementations: Host.h (synchronous), simulated/ and cuda/. One conformance
// suite runs on all of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_DEVICE_H
#define CHIMERA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/device/Block.h"
#include "runtime/device/Bytes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A point of a queue: the point after all operations that were on the queue
/// when the event was recorded. The event has passed when these operations have
/// taken effect. The default event has always passed.
struct Event {
  uint32_t queue = 0;
  uint64_t position = 0;
  /// Data of the device that lives as long as any copy of the event.
  std::shared_ptr<const void> handle = {};
};

/// Memory that an operation uses.
struct Access {
  enum Kind { Reads, Writes, Updates } kind;
  ConstBytes bytes;
};
inline Access reads(ConstBytes bytes) { return {Access::Reads, bytes}; }
/// Writes all of the bytes without reading them.
inline Access writes(Bytes bytes) { return {Access::Writes, bytes}; }
/// Reads the bytes and writes some or all of them.
inline Access updates(Bytes bytes) { return {Access::Updates, bytes}; }

/// Translates addresses of the device into addresses that the work of an
/// operation (Queue::launch) can access. On most devices both are the same.
class AddressMap {
public:
  virtual ~AddressMap() = default;
  Bytes operator()(Bytes bytes) const {
    return {const_cast<std::byte *>(find(bytes)), bytes.size()};
  }
  ConstBytes operator()(ConstBytes bytes) const {
    return {find(bytes), bytes.size()};
  }

protected:
  virtual const std::byte *find(ConstBytes bytes) const = 0;
};

class Queue {
public:
  virtual ~Queue() = default;

  /// Executes `work` once, with a map for the bytes of `accesses`. `work` must
  /// not access other memory of the device. Some queues call `work`
  /// immediately; its effects still occur in the queue's order. Others call it
  /// later, perhaps on another thread. If `work` throws an exception, this call
  /// or a later call of the device throws it.
  using Work = std::function<void(const AddressMap &)>;
  virtual void launch(std::span<const Access> accesses, Work work) = 0;
  void launch(std::initializer_list<Access> accesses, Work work) {
    launch(std::span(accesses.begin(), accesses.size()), std::move(work));
  }

  virtual void zero(Bytes bytes) = 0;
  /// Copies to another range of the same size.
  virtual void copy(ConstBytes from, Bytes to) = 0;
  /// Writes the left fold of `contributions` to `sum`; see Fold.h.
  virtual void fold(ElementType type, std::vector<ConstBytes> contributions,
                    Bytes sum) = 0;
  /// Multiplies the elements by `factor`; see Fold.h.
  virtual void scale(ElementType type, Bytes bytes, double factor) = 0;

  /// Reserves memory for `count` loads that are in flight at the same time and
  /// have `bytes` bytes together. So no load has to allocate memory.
  virtual void reserveForLoads(uint64_t count, uint64_t bytes) {
    (void)count, (void)bytes;
  }
  /// Fills `to`. Calls `fill` once, before this call returns, with host memory
  /// of the same size. After `fill` has written this memory, the queue copies
  /// it to `to`.
  virtual void loadFromHost(Bytes to,
                            const std::function<void(Bytes)> &fill) = 0;
  /// Copies to host memory, which must live until the copy is done. If this
  /// memory is not from allocateHost, the call may block until the copy is
  /// done.
  virtual void readBack(ConstBytes from, Bytes host) = 0;

  /// The point after all operations that are on the queue now.
  virtual Event record() = 0;
  /// Like `record`, but the event also records the time at which it passes, for
  /// Device::nanosecondsBetween.
  virtual Event recordTime() { return record(); }
  /// Makes later operations of this queue wait until `event` has passed. It may
  /// be an event of any queue of the same device.
  virtual void wait(Event event) = 0;
};

/// Bytes that the host can read: memory of the device itself, or a copy.
class HostBytes {
public:
  /// Does not own the memory.
  HostBytes(ConstBytes bytes = {}) : bytes(bytes) {}
  HostBytes(Block copy, size_t size)
      : bytes(copy.get(), size), copy(std::move(copy)) {}

  ConstBytes get() const { return bytes; }

private:
  ConstBytes bytes;
  Block copy;
};

/// The device of one rank. One thread uses it at a time. It must outlive its
/// queues and its memory.
class Device : public MemoryOwner {
public:
  virtual ~Device() = default;

  /// Whether the device is synchronous: each operation has taken effect when
  /// its call returns, so events are not needed for order.
  virtual bool isSynchronous() const = 0;

  /// Allocates at least `bytes` bytes, uninitialised, aligned to `alignment`, a
  /// power of two. Throws std::bad_alloc.
  virtual Block allocate(uint64_t bytes,
                         uint64_t alignment = kBlockAlignment) = 0;
  /// Allocates host memory that queues can copy to and from without blocking.
  virtual Block allocateHost(uint64_t bytes) { return makeBlock(bytes); }
  /// The number of bytes of device memory that were allocated since the process
  /// opened the device, including memory of libraries. None if this is not
  /// known: on hosts, and if several ranks use the same device.
  virtual std::optional<uint64_t> allocatedBytes() { return std::nullopt; }

  /// The memory of a device and the ranks that share it.
  struct Capacity {
    uint64_t freeBytes; ///< when this process opened the device
    uint32_t ranks;     ///< that use it; known after the channels are made
  };
  /// The capacity of the device. None on hosts.
  virtual std::optional<Capacity> capacity() { return std::nullopt; }

  /// Makes a queue of the device. Reports name it `name`.
  virtual std::unique_ptr<Queue> makeQueue(const std::string &name) = 0;

  virtual bool isDone(Event event) = 0;
  /// Blocks the host until `event` has passed. Throws WaitError after
  /// `timeout`, and the exceptions of operations of the device.
  virtual void waitFor(Event event, std::chrono::milliseconds timeout) = 0;
  /// The time between two events from Queue::recordTime. Both must have passed.
  /// Throws std::logic_error if the device has no clock.
  virtual int64_t nanosecondsBetween(const Event &from, const Event &to) {
    (void)from, (void)to;
    throw std::logic_error("this device has no clock");
  }
  /// The number of calls of waitFor that blocked.
  virtual uint64_t blockingWaitCount() const = 0;

  /// The contents of `bytes` after `event` has passed, for the host to read.
  /// The device must not change them while the result lives. May block as
  /// waitFor does.
  virtual HostBytes readBack(ConstBytes bytes, Event event,
                             std::chrono::milliseconds timeout) = 0;

  /// Callbacks that report the progress of an asynchronous device. A thread
  /// other than the rank's calls them.
  struct Listener {
    std::chrono::milliseconds timeout; ///< of one instruction
    /// Reports the oldest instruction that has not ended, with the numbers that
    /// setInstruction got.
    std::function<void(uint64_t step, uint32_t instruction)> onInstruction;
    /// Reports that all instructions on the queues have ended.
    std::function<void()> onIdle;
    /// Reports that an instruction failed or exceeded the timeout. Later calls
    /// of the device may throw or block.
    std::function<void(const std::string &)> onFailure;
  };
  /// Sets the listener, or removes it if there is none. Has no effect on
  /// synchronous devices.
  virtual void setListener(std::optional<Listener> listener) { (void)listener; }

  /// Operations that are put on queues from now on belong to this instruction
  /// of this step. Reports name this instruction.
  virtual void setInstruction(uint64_t step, uint32_t instruction) {
    (void)step, (void)instruction;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_DEVICE_H
