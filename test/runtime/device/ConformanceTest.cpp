//===- ConformanceTest.cpp - Behaviour of every device --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/BFloat16.h"
#include "test/runtime/device/Devices.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
class DeviceConformance : public testing::TestWithParam<DeviceKind> {
protected:
  void SetUp() override {
    made = GetParam().make();
    device = made.device.get();
  }
  void TearDown() override {
    EXPECT_EQ(made.faults(), std::vector<std::string>());
  }

  template <typename T> Bytes allocate(size_t count) {
    blocks.push_back(device->allocate(count * sizeof(T)));
    return {blocks.back().get(), count * sizeof(T)};
  }
  template <typename T>
  static void load(Queue &queue, Bytes to, const std::vector<T> &values) {
    queue.loadFromHost(to, [&](Bytes host) {
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

  DeviceUnderTest made;
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
  // The sum may overwrite a summand.
  queue->fold(ElementType::Float64, {summands[0], summands[2], summands[1]},
              summands[1]);
  EXPECT_EQ(read<double>(*queue, summands[1])[0], 1.0);
}

TEST_P(DeviceConformance, SumsOfBFloat16AreRoundedOnce) {
  auto queue = device->makeQueue("q");
  std::vector<Bytes> summands;
  for (float value : {1.0f, 0x1p-8f, 0x1p-8f}) {
    summands.push_back(allocate<BFloat16>(3));
    load(*queue, summands.back(), std::vector<BFloat16>(3, BFloat16(value)));
  }
  Bytes sum = allocate<BFloat16>(3);
  queue->fold(ElementType::BFloat16, {summands[0], summands[1], summands[2]},
              sum);
  EXPECT_EQ(read<BFloat16>(*queue, sum),
            std::vector<BFloat16>(3, BFloat16(1 + 0x1p-7f)));
  queue->scale(ElementType::BFloat16, sum, 0.1);
  EXPECT_EQ(read<BFloat16>(*queue, sum),
            std::vector<BFloat16>(3, BFloat16((1 + 0x1p-7f) * 0.1f)));
}

TEST_P(DeviceConformance, IntegersHaveNoFractions) {
  auto queue = device->makeQueue("q");
  Bytes a = allocate<uint64_t>(2);
  load(*queue, a, std::vector<uint64_t>{3, 4});
  queue->scale(ElementType::UInt64, a, 0.5);
  EXPECT_EQ(read<uint64_t>(*queue, a), (std::vector<uint64_t>{3, 4}));
}

TEST_P(DeviceConformance, WorkRunsOnceInOrder) {
  if (!made.worksOnHost)
    GTEST_SKIP() << "work puts operations on the device";
  auto queue = device->makeQueue("q");
  Bytes a = allocate<uint64_t>(2), b = allocate<uint64_t>(2);
  load(*queue, a, std::vector<uint64_t>{3, 4});
  int calls = 0;
  queue->launch({reads(a), writes(b)}, [&, a, b](const AddressMap &at) {
    ++calls;
    std::ranges::copy(at(ConstBytes(a)), at(b).begin());
    // Work may also access a part of the bytes that it has declared.
    at(b.subspan(8))[0] = std::byte(9);
    EXPECT_EQ(at(Bytes()).size(), 0u);
  });
  EXPECT_EQ(read<uint64_t>(*queue, b), (std::vector<uint64_t>{3, 9}));
  EXPECT_EQ(calls, 1);
}

TEST_P(DeviceConformance, AnExceptionInWorkIsReported) {
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

// The host memory from which a load copies may be freed before the copy
// happens, as with a DataSource.
TEST_P(DeviceConformance, LoadsMayComeFasterThanTheyAreUsed) {
  auto queue = device->makeQueue("q");
  queue->reserveForLoads(3, 3000);
  constexpr size_t kLoads = 40;
  std::vector<Bytes> loaded;
  for (size_t k = 0; k < kLoads; ++k) {
    loaded.push_back(allocate<uint8_t>(100 + 47 * k));
    load(*queue, loaded.back(), std::vector<uint8_t>(100 + 47 * k, uint8_t(k)));
  }
  for (size_t k = 0; k < kLoads; ++k)
    EXPECT_EQ(read<uint8_t>(*queue, loaded[k]),
              std::vector<uint8_t>(100 + 47 * k, uint8_t(k)));
}

TEST_P(DeviceConformance, SumsMayBeginAndEndAnywhere) {
  auto queue = device->makeQueue("q");
  std::vector<uint8_t> values(1000);
  std::iota(values.begin(), values.end(), uint8_t(1));
  Bytes a = allocate<uint8_t>(1000), b = allocate<uint8_t>(1000);
  load(*queue, a, values);
  load(*queue, b, std::vector<uint8_t>(1000, 1));
  // 5 whole elements and 3 bytes, none of them aligned.
  queue->fold(ElementType::UInt64, {a.subspan(3, 43), a.subspan(101, 43)},
              b.subspan(5, 43));
  std::vector<uint8_t> expected(1000, 1);
  for (size_t at = 0; at < 43; at += 8) {
    size_t size = std::min<size_t>(8, 43 - at);
    uint64_t one = 0, two = 0;
    std::memcpy(&one, &values[3 + at], size);
    std::memcpy(&two, &values[101 + at], size);
    one += two;
    std::memcpy(&expected[5 + at], &one, size);
  }
  EXPECT_EQ(read<uint8_t>(*queue, b), expected);
}

TEST_P(DeviceConformance, HostMemoryOfADeviceIsTheHosts) {
  auto queue = device->makeQueue("q");
  Block host = device->allocateHost(8);
  Bytes a = allocate<uint64_t>(1);
  load(*queue, a, std::vector<uint64_t>{7});
  queue->readBack(a, {host.get(), 8});
  device->waitFor(queue->record(), kTimeout);
  uint64_t value = 0;
  std::memcpy(&value, host.get(), 8);
  EXPECT_EQ(value, 7u);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance,
                         testing::ValuesIn(deviceKinds()),
                         [](const testing::TestParamInfo<DeviceKind> &info) {
                           return info.param.name;
                         });
} // namespace
