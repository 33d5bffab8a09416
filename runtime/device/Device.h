//===- Device.h - Memory and queues of a rank -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank computes on its device. The host, that is the rank's thread, puts
// operations on the queues of the device and goes on. The operations of one
// queue take effect one after another; those of two queues are ordered by
// nothing but events. The host reads no memory of the device and writes none:
// it copies from and to it through a queue.
//
// Implementations: Host.h, where a queue executes at once, simulated/ and
// cuda/. One conformance suite runs on all.
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

/// A point of a queue, behind the operations that had been put on it. The
/// default is a point that was passed before anything ran.
struct Event {
  uint32_t queue = 0;
  uint64_t position = 0;
  /// What the device keeps of it while somebody can name it.
  std::shared_ptr<const void> kept = {};
};

/// Memory that an operation uses.
struct Access {
  enum Kind { Reads, Writes, Updates } kind;
  ConstBytes bytes;
};
inline Access reads(ConstBytes bytes) { return {Access::Reads, bytes}; }
/// All of it, without reading it.
inline Access writes(Bytes bytes) { return {Access::Writes, bytes}; }
/// Reads it, and writes any of it.
inline Access updates(Bytes bytes) { return {Access::Updates, bytes}; }

/// Translates addresses of a device into those at which work finds the bytes
/// while a queue executes it. On most devices they are the same.
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

  /// Has `work` executed: called once, with a map for the bytes of `accesses`,
  /// outside of which it reads and writes no memory of the device. A queue
  /// calls it at once, where what it does takes effect in the queue's order all
  /// the same, or later, and perhaps on another thread. What it throws, this
  /// throws or a later call of the device.
  using Work = std::function<void(const AddressMap &)>;
  virtual void launch(std::span<const Access> accesses, Work work) = 0;
  void launch(std::initializer_list<Access> accesses, Work work) {
    launch(std::span(accesses.begin(), accesses.size()), std::move(work));
  }

  virtual void zero(Bytes bytes) = 0;
  /// Copies to other bytes of the same number.
  virtual void copy(ConstBytes from, Bytes to) = 0;
  /// Writes the left fold of `contributions` to `sum`, as Fold.h says.
  virtual void fold(ElementType type, std::vector<ConstBytes> contributions,
                    Bytes sum) = 0;
  /// Multiplies the elements, as Fold.h says.
  virtual void scale(ElementType type, Bytes bytes, double factor) = 0;

  /// Makes ready for so many loads of so many bytes together under way at a
  /// time, so that none of them has to take memory.
  virtual void expectLoads(uint64_t count, uint64_t bytes) {
    (void)count, (void)bytes;
  }
  /// Copies what `fill` writes to host memory of the same size. `fill` is
  /// called once, before this returns.
  virtual void load(Bytes to, const std::function<void(Bytes)> &fill) = 0;
  /// Copies to host memory, which must live until then. Where the device did
  /// not allocate it, this may block until then.
  virtual void readBack(ConstBytes from, Bytes host) = 0;

  /// The point behind all operations so far.
  virtual Event record() = 0;
  /// The same, for Device::nanosecondsBetween.
  virtual Event recordTime() { return record(); }
  /// Later operations of this queue wait until `event`, of any queue of the
  /// same device, has passed.
  virtual void wait(Event event) = 0;
};

/// Bytes that the host can read: the device's own, or a copy of them.
class HostBytes {
public:
  /// Bytes of which somebody else holds the memory.
  HostBytes(ConstBytes bytes = {}) : bytes(bytes) {}
  HostBytes(Block copy, size_t size)
      : bytes(copy.get(), size), copy(std::move(copy)) {}

  ConstBytes get() const { return bytes; }

private:
  ConstBytes bytes;
  Block copy;
};

/// The device of one rank, used by one thread at a time. It outlives its queues
/// and its memory.
class Device {
public:
  virtual ~Device() = default;

  /// Whether an operation has taken effect when its call returns, so that there
  /// is nothing to order by events.
  virtual bool executesAtOnce() const = 0;

  /// At least `bytes` bytes of memory with anything in them, which begin at a
  /// multiple of `alignment`, a power of two. Throws std::bad_alloc.
  virtual Block allocate(uint64_t bytes,
                         uint64_t alignment = kBlockAlignment) = 0;
  /// Memory of the host, to and from which queues copy without blocking.
  virtual Block allocateHost(uint64_t bytes) { return makeBlock(bytes); }
  virtual void free(std::byte *memory) noexcept = 0;
  /// What the process has taken of the device's memory since it opened it, with
  /// what libraries took on their own. None where that cannot be told: on
  /// hosts, and where several ranks use the same device.
  virtual std::optional<uint64_t> takenBytes() { return std::nullopt; }

  /// What ranks have of a device that is not the host.
  struct Capacity {
    uint64_t bytes; ///< of memory that nobody used when this opened the device
    uint32_t ranks; ///< that use the device, once the run has its channels
  };
  /// None on hosts.
  virtual std::optional<Capacity> capacity() { return std::nullopt; }

  /// `name` is for reports.
  virtual std::unique_ptr<Queue> makeQueue(const std::string &name) = 0;

  virtual bool isDone(Event event) = 0;
  /// Blocks the host until `event` has passed. Throws WaitError when `timeout`
  /// passes first, and what operations of the device threw.
  virtual void waitFor(Event event, std::chrono::milliseconds timeout) = 0;
  /// The time between two points that a queue's `recordTime` gave and that have
  /// passed. Throws std::logic_error on devices without a clock.
  virtual int64_t nanosecondsBetween(const Event &from, const Event &to) {
    (void)from, (void)to;
    throw std::logic_error("this device has no clock");
  }
  /// How many calls of waitFor blocked.
  virtual uint64_t hostBlocks() const = 0;

  /// Bytes of the device for the host to read, as they are behind `event`; they
  /// must stay unchanged while the result lives. May block as waitFor does.
  virtual HostBytes readBack(ConstBytes bytes, Event event,
                             std::chrono::milliseconds timeout) = 0;

  /// Who is told, on another thread, what a device that executes later is at.
  struct Listener {
    std::chrono::milliseconds timeout; ///< of one instruction
    /// Of those that `enter` told of, the oldest that has not ended.
    std::function<void(uint64_t step, uint32_t instruction)> isAt;
    /// All have ended that were put on queues.
    std::function<void()> hasNothing;
    /// An instruction does not end, or failed. Later calls of the device may
    /// throw this, or block.
    std::function<void(const std::string &)> failed;
  };
  /// From now on, until it is called again; nothing for no listener. It does
  /// nothing on devices that execute at once.
  virtual void listen(std::optional<Listener> listener) { (void)listener; }

  /// What is put on queues from now on belongs to this instruction of this
  /// step. For reports.
  virtual void enter(uint64_t step, uint32_t instruction) {
    (void)step, (void)instruction;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_DEVICE_H
