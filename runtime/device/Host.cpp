//===- Host.cpp - The device that is the host itself ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Host.h"

#include "runtime/device/Fold.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

namespace {
class SameAddresses final : public AddressMap {
  const std::byte *find(ConstBytes bytes) const override {
    return bytes.data();
  }
};

class HostQueue final : public Queue {
public:
  void launch(std::span<const Access>, Work work) override {
    work(SameAddresses());
  }
  void zero(Bytes bytes) override { std::ranges::fill(bytes, std::byte(0)); }
  void copy(ConstBytes from, Bytes to) override {
    std::ranges::copy(from, to.begin());
  }
  void fold(ElementType type, std::vector<ConstBytes> contributions,
            Bytes sum) override {
    std::vector<const std::byte *> summands;
    for (ConstBytes contribution : contributions)
      summands.push_back(contribution.data());
    chimera::runtime::fold(type, summands, sum.data(), sum.size());
  }
  void scale(ElementType type, Bytes bytes, double factor) override {
    scaleElements(type, bytes, factor);
  }
  void loadFromHost(Bytes to, const std::function<void(Bytes)> &fill) override {
    fill(to);
  }
  void readBack(ConstBytes from, Bytes host) override { copy(from, host); }
  Event record() override { return {}; }
  void wait(Event) override {}
};

class Host final : public Device {
public:
  bool isSynchronous() const override { return true; }
  Block allocate(uint64_t bytes, uint64_t alignment) override {
    Block block = makeBlock(bytes, alignment);
    // Touch every page now, so that the first step is not slower than others.
    std::memset(block.get(), 0, blockBytes(bytes, alignment));
    return block;
  }
  // FreeMemory frees the memory of this device with std::free, because
  // makeBlock sets no device.
  void free(std::byte *) noexcept override {}
  std::unique_ptr<Queue> makeQueue(const std::string &) override {
    return std::make_unique<HostQueue>();
  }
  bool isDone(Event) override { return true; }
  void waitFor(Event, std::chrono::milliseconds) override {}
  uint64_t blockingWaitCount() const override { return 0; }
  HostBytes readBack(ConstBytes bytes, Event,
                     std::chrono::milliseconds) override {
    return bytes;
  }
};
} // namespace

std::unique_ptr<Device> chimera::runtime::makeHostDevice() {
  return std::make_unique<Host>();
}

Queue &chimera::runtime::hostQueue() {
  static HostQueue queue; // has no state
  return queue;
}
