//===- ConformanceTest.cpp - What every device must do --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Host.h"
#include "runtime/device/simulated/Simulation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr auto kTimeout = 30s;

/// A device of each kind, the simulated one under several seeds.
class DeviceConformance : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    if (GetParam() == 0) {
      host = makeHostDevice();
      device = host.get();
    } else {
      simulation = std::make_unique<simulated::Simulation>(
          simulated::Options{.seed = static_cast<uint64_t>(GetParam())});
      device = &simulation->device(0);
    }
  }
  void TearDown() override {
    if (simulation) {
      EXPECT_EQ(simulation->violations(), std::vector<std::string>());
    }
  }

  template <typename T> Bytes allocate(size_t count) {
    blocks.push_back(device->allocate(count * sizeof(T)));
    return {blocks.back().get(), count * sizeof(T)};
  }
  template <typename T>
  static void load(Queue &queue, Bytes to, const std::vector<T> &values) {
    queue.load(to, [&](Bytes host) {
      std::ranges::copy(std::as_bytes(std::span(values)), host.begin());
    });
  }
  template <typename T> std::vector<T> read(Queue &queue, Bytes from) {
    std::vector<T> values(from.size() / sizeof(T));
    HostBytes host = device->readBack(from, queue.record(), kTimeout);
    std::ranges::copy(host.get(),
                      std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

  std::unique_ptr<Device> host;
  std::unique_ptr<simulated::Simulation> simulation;
  Device *device = nullptr;
  std::vector<Block> blocks;
};

TEST_P(DeviceConformance, WhatIsLoadedIsReadBack) {
  auto queue = device->makeQueue("q");
  for (size_t size : {0, 1, 7, 64, 100000}) {
    std::vector<uint8_t> values(size);
    std::iota(values.begin(), values.end(), uint8_t(3));
    Bytes bytes = allocate<uint8_t>(size);
    load(*queue, bytes, values);
    EXPECT_EQ(read<uint8_t>(*queue, bytes), values);
  }
}

TEST_P(DeviceConformance, MemoryIsAligned) {
  for (size_t size : {1, 65, 4097})
    for (size_t alignment : {8, 64, 256, 4096}) {
      Block block = device->allocate(size, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % alignment, 0u);
    }
}

TEST_P(DeviceConformance, AQueueKeepsItsOrder) {
  auto queue = device->makeQueue("q");
  Bytes a = allocate<float>(1000), b = allocate<float>(1000);
  load(*queue, a, std::vector<float>(1000, 3));
  queue->copy(a, b);
  queue->scale(ElementType::Float32, b, 0.5);
  queue->zero(a.first(2000));
  queue->copy(b.first(400), a.subspan(100 * 4, 400));
  std::vector<float> expected(1000, 3);
  std::fill(expected.begin(), expected.begin() + 500, 0.0f);
  std::fill(expected.begin() + 100, expected.begin() + 200, 1.5f);
  EXPECT_EQ(read<float>(*queue, a), expected);
  EXPECT_EQ(read<float>(*queue, b), std::vector<float>(1000, 1.5));
}

TEST_P(DeviceConformance, EventsOrderQueues) {
  auto first = device->makeQueue("first"), second = device->makeQueue("second");
  Bytes a = allocate<uint64_t>(100), b = allocate<uint64_t>(100);
  load(*first, a, std::vector<uint64_t>(100, 1));
  for (uint64_t round = 0; round < 20; ++round) {
    second->wait(first->record());
    second->fold(ElementType::UInt64, {a, a}, b);
    first->wait(second->record());
    first->copy(b, a);
  }
  EXPECT_EQ(read<uint64_t>(*first, a),
            std::vector<uint64_t>(100, uint64_t(1) << 20));
}

TEST_P(DeviceConformance, AnEventMayBeWaitedForLateAndTwice) {
  auto first = device->makeQueue("first"), second = device->makeQueue("second");
  Bytes a = allocate<uint64_t>(1), b = allocate<uint64_t>(1);
  second->wait({});
  load(*first, a, std::vector<uint64_t>{5});
  Event loaded = first->record();
  device->waitFor(loaded, kTimeout);
  EXPECT_TRUE(device->isDone(loaded));
  EXPECT_TRUE(device->isDone({}));
  second->wait(loaded);
  second->wait(loaded);
  second->copy(a, b);
  EXPECT_EQ(read<uint64_t>(*second, b)[0], 5u);
}

TEST_P(DeviceConformance, SumsAreLeftFolds) {
  auto queue = device->makeQueue("q");
  std::vector<Bytes> summands;
  for (double value : {1e16, 1.0, -1e16}) {
    summands.push_back(allocate<double>(1));
    load(*queue, summands.back(), std::vector<double>{value});
  }
  Bytes sum = allocate<double>(1);
  queue->fold(ElementType::Float64, {summands[0], summands[1], summands[2]},
              sum);
  EXPECT_EQ(read<double>(*queue, sum)[0], 0.0);
  // The sum may be one of them.
  queue->fold(ElementType::Float64, {summands[0], summands[2], summands[1]},
              summands[1]);
  EXPECT_EQ(read<double>(*queue, summands[1])[0], 1.0);
}

TEST_P(DeviceConformance, IntegersHaveNoFractions) {
  auto queue = device->makeQueue("q");
  Bytes a = allocate<uint64_t>(2);
  load(*queue, a, std::vector<uint64_t>{3, 4});
  queue->scale(ElementType::UInt64, a, 0.5);
  EXPECT_EQ(read<uint64_t>(*queue, a), (std::vector<uint64_t>{3, 4}));
}

TEST_P(DeviceConformance, WorkIsCalledOnceInItsTurn) {
  auto queue = device->makeQueue("q");
  Bytes a = allocate<uint64_t>(2), b = allocate<uint64_t>(2);
  load(*queue, a, std::vector<uint64_t>{3, 4});
  int calls = 0;
  queue->launch({reads(a), writes(b)}, [&, a, b](const AddressMap &at) {
    ++calls;
    std::ranges::copy(at(ConstBytes(a)), at(b).begin());
    // Of a part of what was declared.
    at(b.subspan(8))[0] = std::byte(9);
    EXPECT_EQ(at(Bytes()).size(), 0u);
  });
  EXPECT_EQ(read<uint64_t>(*queue, b), (std::vector<uint64_t>{3, 9}));
  EXPECT_EQ(calls, 1);
}

TEST_P(DeviceConformance, WhatWorkThrowsIsTold) {
  auto queue = device->makeQueue("q");
  EXPECT_THROW(
      {
        queue->launch({}, [](const AddressMap &) {
          throw std::runtime_error("no memory left");
        });
        device->waitFor(queue->record(), kTimeout);
      },
      std::runtime_error);
}

TEST_P(DeviceConformance, CopiesToTheHostComeInTheirTurn) {
  auto queue = device->makeQueue("q");
  Bytes a = allocate<uint64_t>(1);
  std::vector<uint64_t> copies(3);
  for (uint64_t k = 0; k < 3; ++k) {
    load(*queue, a, std::vector<uint64_t>{k + 1});
    queue->readBack(a, std::as_writable_bytes(std::span(copies).subspan(k, 1)));
  }
  device->waitFor(queue->record(), kTimeout);
  EXPECT_EQ(copies, (std::vector<uint64_t>{1, 2, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, testing::Range(0, 6),
                         [](const testing::TestParamInfo<int> &info) {
                           return info.param == 0
                                      ? std::string("Host")
                                      : "Simulated" +
                                            std::to_string(info.param);
                         });
} // namespace
