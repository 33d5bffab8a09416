//===- Conformance.h - Helpers for tests of all channels --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CHANNEL_CONFORMANCE_H
#define CHIMERA_TEST_RUNTIME_CHANNEL_CONFORMANCE_H

#include "runtime/system/Deadline.h"
#include "test/runtime/channel/World.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace chimera::runtime::test {

constexpr std::chrono::seconds kTimeout(100);

class Conformance : public testing::TestWithParam<World> {};
/// Tests of guarantees that only channels for host memory give.
class HostConformance : public testing::TestWithParam<World> {};

template <typename T> ConstBytes bytesOf(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}
template <typename T> Bytes bytesOf(std::vector<T> &values) {
  return std::as_writable_bytes(std::span(values));
}

/// Posts a send or a receive of `values`. It may begin only after the
/// constructor of `values` has written their first contents.
template <typename T>
std::unique_ptr<Request> send(Rank &rank, uint32_t to, Values<T> &values) {
  return rank.channels.postSend(to, values.bytes(), values.after());
}
template <typename T>
std::unique_ptr<Request> receive(Rank &rank, uint32_t from, Values<T> &values) {
  return rank.channels.postReceive(from, values.bytes(), values.after());
}

/// Returns true when `byte`, which is 0 at first, has another value. Meanwhile
/// this rank computes and does not call the channels. Returns false after
/// kTimeout.
__attribute__((no_sanitize("thread"))) inline bool
isWritten(Channels &channels, const uint8_t &byte) {
  channels.beginComputing();
  Deadline deadline(kTimeout);
  while (!deadline.passed()) {
    if (static_cast<const volatile uint8_t &>(byte) != 0)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CHANNEL_CONFORMANCE_H
