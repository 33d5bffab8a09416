//===- SimulatedTest.cpp - Faults that a simulated device reports ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/simulated/Simulation.h"

#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;
using simulated::Simulation;

namespace {
constexpr auto kSimulatedTimeout = 1s;

/// Runs `body` on a simulated device, with 30 seeds. Each run must report
/// exactly the violations `expected`.
void expectViolations(const std::function<void(Device &)> &body,
                      std::vector<std::string> expected) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Simulation simulation({.seed = seed});
    body(simulation.device(0));
    std::vector<std::string> found = simulation.violations();
    for (std::string &text : found) {
      // Remove the text about the first use: the seed decides which of the two
      // uses is the first.
      size_t at = text.find(", and no event orders");
      if (at != std::string::npos)
        text = text.substr(at + 2);
    }
    std::ranges::sort(found);
    EXPECT_EQ(found, expected) << "seed " << seed;
  }
}

void drain(Device &device, Queue &queue) {
  device.waitFor(queue.record(), kSimulatedTimeout);
}

TEST(Simulated, TheHostFaultsAtItsAddresses) {
  Simulation simulation({});
  Block block = simulation.device(0).allocate(64);
  const volatile std::byte *address = block.get();
  // On x86-64, the fault at an address that is not canonical is SIGBUS if the
  // instruction uses the stack's base register, otherwise SIGSEGV.
  const auto isFault = [](int status) {
    return testing::KilledBySignal(SIGSEGV)(status) ||
           testing::KilledBySignal(SIGBUS)(status);
  };
  auto touch = [&] {
    // Sanitizers have handlers.
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    (void)*address;
  };
  EXPECT_EXIT(touch(), isFault, "");
}

const std::string kUnordered = "and no event orders the two";

TEST(Simulated, TwoQueuesThatWriteTheSameMemoryAreReported) {
  for (bool ordered : {false, true})
    expectViolations(
        [&](Device &device) {
          Block block = device.allocate(64);
          Bytes bytes(block.get(), 64);
          auto first = device.makeQueue("first"),
               second = device.makeQueue("second");
          first->zero(bytes.first(40));
          if (ordered)
            second->wait(first->record());
          second->zero(bytes.last(40));
          drain(device, *first);
          drain(device, *second);
        },
        ordered ? std::vector<std::string>() : std::vector{kUnordered});
}

TEST(Simulated, AReadDuringAWriteIsReportedAndTwoReadsAreNot) {
  for (bool writes : {false, true})
    expectViolations(
        [&](Device &device) {
          Block block = device.allocate(64), other = device.allocate(64);
          Bytes bytes(block.get(), 64), to(other.get(), 64);
          auto first = device.makeQueue("first"),
               second = device.makeQueue("second");
          first->zero(bytes);
          second->wait(first->record());
          second->copy(bytes, to);
          if (writes)
            first->zero(bytes.first(1));
          else
            first->launch({reads(bytes)}, [](const AddressMap &) {});
          drain(device, *first);
          drain(device, *second);
        },
        writes ? std::vector{kUnordered} : std::vector<std::string>());
}

// The host waits for the end of the first operation before it enqueues the
// second operation. So the second one is later in this run, but no event orders
// the two.
TEST(Simulated, TimingAloneDoesNotOrder) {
  expectViolations(
      [&](Device &device) {
        Block block = device.allocate(64);
        Bytes bytes(block.get(), 64);
        auto first = device.makeQueue("first"),
             second = device.makeQueue("second");
        first->zero(bytes);
        drain(device, *first);
        second->zero(bytes);
        drain(device, *second);
      },
      {kUnordered});
}

TEST(Simulated, AReadOfUnwrittenMemoryIsReported) {
  Simulation simulation({});
  Device &device = simulation.device(0);
  Block block = device.allocate(64), other = device.allocate(64);
  auto queue = device.makeQueue("q");
  Bytes bytes(block.get(), 64);
  queue->zero(bytes.first(32));
  queue->copy(bytes, {other.get(), 64});
  drain(device, *queue);
  EXPECT_EQ(simulation.violations(),
            std::vector<std::string>{"the copy of rank 0 instruction 0 in step "
                                     "0 reads 32 bytes that nothing has "
                                     "written"});
}

/// The error that `body` gets. It may use a queue and two blocks of 64 bytes.
std::string
failureOf(const std::function<void(Device &, Queue &, Bytes, Bytes)> &body) {
  Simulation simulation({});
  Device &device = simulation.device(0);
  Block block = device.allocate(64), other = device.allocate(64);
  auto queue = device.makeQueue("q");
  queue->zero({block.get(), 64});
  queue->zero({other.get(), 64});
  try {
    body(device, *queue, {block.get(), 64}, {other.get(), 64});
    device.waitFor(queue->record(), kSimulatedTimeout);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "nothing";
}

TEST(Simulated, WorkUsesWhatItDeclared) {
  EXPECT_EQ(failureOf([](Device &, Queue &queue, Bytes a, Bytes b) {
              queue.launch({reads(a)}, [=](const AddressMap &at) { at(b); });
            }),
            "the action of rank 0 instruction 0 in step 0: uses bytes that it "
            "has not declared");
  EXPECT_EQ(failureOf([](Device &, Queue &queue, Bytes a, Bytes) {
              queue.launch({reads(a)}, [=](const AddressMap &at) {
                at(a)[63] = std::byte(1);
              });
            }),
            "the action of rank 0 instruction 0 in step 0: writes to memory "
            "that it said it only reads");
}

TEST(Simulated, AccessOutsideOrAfterFreeIsReported) {
  const std::string kNone =
      "the zeroing of rank 0 instruction 0 in step 0: uses 65 bytes that are "
      "not allocated on this device";
  EXPECT_EQ(failureOf([](Device &, Queue &queue, Bytes a, Bytes) {
              queue.zero({a.data(), 65});
            }),
            kNone);
  EXPECT_NE(failureOf([](Device &device, Queue &queue, Bytes, Bytes) {
              queue.zero({device.allocate(64).get(), 64});
            }).find("not allocated on this device"),
            std::string::npos);
}

TEST(Simulated, AnEndlessWaitIsReported) {
  std::string failure =
      failureOf([](Device &device, Queue &queue, Bytes, Bytes) {
        auto other = device.makeQueue("other");
        Event never = other->record();
        never.position += 1;
        queue.wait(never);
        device.waitFor(queue.record(), kSimulatedTimeout);
      });
  EXPECT_EQ(failure, "no rank can advance:\n  rank 0, queue q: at the wait for "
                     "an event of rank 0 instruction 0 in step 0\n");
}

TEST(Simulated, AnUnreferencedEventIsFreed) {
  Simulation simulation({});
  Device &device = simulation.device(0);
  Block block = device.allocate(64);
  auto queue = device.makeQueue("q");
  std::weak_ptr<const void> idle = queue->record().handle;
  queue->zero({block.get(), 64});
  Event zeroed = queue->record();
  std::weak_ptr<const void> waited = zeroed.handle;
  EXPECT_EQ(zeroed.handle, queue->record().handle);
  device.waitFor(zeroed, kSimulatedTimeout);
  EXPECT_FALSE(waited.expired());
  zeroed = {};
  EXPECT_TRUE(waited.expired());
  EXPECT_TRUE(idle.expired());
}

TEST(Simulated, BlocksOfTheHostAreCounted) {
  Simulation simulation({});
  Device &device = simulation.device(0);
  Block block = device.allocate(64);
  auto queue = device.makeQueue("q");
  queue->zero({block.get(), 64});
  EXPECT_EQ(device.blockingWaitCount(), 0u);
  Event zeroed = queue->record();
  EXPECT_FALSE(device.isDone(zeroed));
  device.waitFor(zeroed, kSimulatedTimeout);
  device.waitFor(zeroed, kSimulatedTimeout);
  EXPECT_EQ(device.blockingWaitCount(), 1u);
}
} // namespace
