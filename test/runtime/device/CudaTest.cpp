//===- CudaTest.cpp - CUDA calls of a device ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"
#include "test/runtime/cuda/CleanGpus.h"
#include "test/runtime/device/Devices.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;
using cuda::CudaDevice;

namespace {
class Cuda : public CleanGpus {
protected:
  static size_t callsOf(const std::string &name) {
    return std::ranges::count_if(calls(), [&](const std::string &call) {
      return call.starts_with(name);
    });
  }
};

bool holds(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

template <typename Call> std::string messageOf(const Call &call) {
  try {
    call();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(Cuda, NoCallBlocksTheHost) {
  CudaDevice device({});
  auto queue = device.makeQueue("q"), other = device.makeQueue("other");
  Block block = device.allocate(800), host = device.allocateHost(400);
  Bytes a(block.get(), 400), b(block.get() + 400, 400);
  queue->reserveForLoads(2, 800);
  holdStreams(true);
  queue->loadFromHost(
      a, [](Bytes bytes) { std::ranges::fill(bytes, std::byte(1)); });
  queue->zero(b);
  queue->fold(ElementType::Float32, {a, b}, b);
  queue->scale(ElementType::Float32, b, 2);
  queue->readBack(b, {host.get(), 400});
  other->wait(queue->record());
  other->copy(b, a);
  Event end = other->record();
  EXPECT_FALSE(device.isDone(end));
  EXPECT_EQ(device.blockingWaitCount(), 0u);
  holdStreams(false);
  device.waitFor(end, kTimeout);
  EXPECT_TRUE(device.isDone(end));
}

TEST_F(Cuda, ExpectedLoadsTakeNoMemory) {
  CudaDevice device({});
  auto queue = device.makeQueue("q");
  Block block = device.allocate(1000);
  queue->reserveForLoads(6, 6000);
  recordCalls(true);
  for (int load = 0; load < 50; ++load)
    queue->loadFromHost({block.get(), 1000}, [](Bytes) {});
  EXPECT_EQ(callsOf("cudaHostAlloc"), 0u);
  EXPECT_EQ(callsOf("cudaMemcpyAsync"), 50u);
  for (const std::string &call : calls())
    EXPECT_FALSE(holds(call, "blocks")) << call;
}

TEST_F(Cuda, EventsAreUsedAgain) {
  CudaDevice device({});
  auto queue = device.makeQueue("q");
  recordCalls(true);
  for (int round = 0; round < 20; ++round)
    device.waitFor(queue->record(), kTimeout);
  EXPECT_EQ(callsOf("cudaEventCreate"), 1u);
  EXPECT_EQ(callsOf("cudaEventRecord"), 20u);
}

TEST_F(Cuda, ReportsExhaustedMemory) {
  setDevices(1, 1 << 20);
  CudaDevice device({});
  Block first = device.allocate(700000);
  EXPECT_THROW(device.allocate(700000), std::bad_alloc);
  std::string message = messageOf([&] { device.allocate(700000); });
  EXPECT_TRUE(holds(message, "the GPU has no memory left: cudaMalloc") &&
              holds(message, "GiB left"))
      << message;
  // The device still works.
  Block second = device.allocate(1000);
}

TEST_F(Cuda, ReportsAMissingGpu) {
  setDevices(0, 0);
  EXPECT_TRUE(holds(messageOf([] { cuda::deviceCount(); }),
                    "expected a GPU that CUDA can use, got none"));
  setDevices(2, 1 << 20);
  EXPECT_EQ(messageOf([] { CudaDevice({.ordinal = 2}); }),
            "expected the number of a GPU, from 0 to 1, got 2");
  failCall("cudaGetDeviceCount", cudaErrorInsufficientDriver);
  EXPECT_TRUE(holds(messageOf([] { cuda::deviceCount(); }),
                    "expected a GPU that CUDA can use, got none ("));
}

TEST_F(Cuda, ReportsKernelsThatDoNotCompile) {
  setDevices(1, 1 << 20, /*capability=*/103);
  failCall("nvrtcCompileProgram", 6);
  EXPECT_TRUE(holds(messageOf([] { CudaDevice({}); }),
                    "cannot compile kernels for a GPU of compute capability "
                    "10.3: nvrtcCompileProgram: "));
}

TEST_F(Cuda, AnOperationThatFailsFailsTheDevice) {
  {
    CudaDevice device({});
    auto queue = device.makeQueue("q");
    Block block = device.allocate(100);
    failExecution(cudaErrorIllegalAddress);
    EXPECT_TRUE(holds(messageOf([&] {
                        queue->zero({block.get(), 100});
                        device.waitFor(queue->record(), kTimeout);
                      }),
                      "the GPU failed: "));
    EXPECT_THROW(queue->zero({block.get(), 100}), std::runtime_error);
    // After such a failure, all calls to a real GPU fail until the process
    // ends. Reset the software GPU, so that the device can free its memory.
    resetSoftwareGpu();
  }
}

TEST_F(Cuda, AWaitThatTimesOutFailsTheDevice) {
  CudaDevice device({.ordinal = 1, .user = "rank 5"});
  auto queue = device.makeQueue("q");
  Block block = device.allocate(100);
  holdStreams(true);
  queue->zero({block.get(), 100});
  for (int again = 0; again < 2; ++again)
    try {
      device.waitFor(queue->record(), 20ms);
      ADD_FAILURE() << "nothing thrown";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::TimedOut);
      EXPECT_TRUE(holds(error.what(), "waiting for GPU 1 of rank 5"))
          << error.what();
    }
  // Neither call may wait for the operation on the held stream.
  queue.reset();
  block.reset();
  holdStreams(false);
}

TEST_F(Cuda, WorkAfterAFailureIsSkipped) {
  CudaDevice device({.worksOnHost = true});
  auto queue = device.makeQueue("q");
  bool isCalled = false;
  holdStreams(true);
  queue->launch({}, [](const AddressMap &) {
    throw std::runtime_error("no memory left");
  });
  queue->launch({}, [&](const AddressMap &) { isCalled = true; });
  Event end = queue->record();
  holdStreams(false);
  EXPECT_EQ(messageOf([&] { device.waitFor(end, kTimeout); }),
            "no memory left");
  queue.reset();
  EXPECT_FALSE(isCalled);
}

/// The calls that a listener of the device got.
struct ListenerCalls {
  std::mutex mutex;
  std::vector<std::string> all;

  void add(const std::string &what) {
    std::lock_guard lock(mutex);
    all.push_back(what);
  }
  bool comes(const std::string &what) {
    for (auto end = std::chrono::steady_clock::now() + kTimeout;
         std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(1ms)) {
      std::lock_guard lock(mutex);
      if (!all.empty() && all.back().find(what) != std::string::npos)
        return true;
    }
    return false;
  }
  Device::Listener listener(std::chrono::milliseconds timeout) {
    return {.timeout = timeout,
            .onInstruction =
                [this](uint64_t step, uint32_t instruction) {
                  add(std::to_string(step) + ":" + std::to_string(instruction));
                },
            .onIdle = [this] { add("nothing"); },
            .onFailure = [this](const std::string &why) { add(why); }};
  }
};

TEST_F(Cuda, AListenerGetsTheProgressOfTheGpu) {
  ListenerCalls heard;
  CudaDevice device({});
  auto queue = device.makeQueue("q");
  device.setListener(heard.listener(kTimeout));
  holdStreams(true);
  for (uint32_t instruction : {3, 4, 7}) {
    device.setInstruction(2, instruction);
    queue->record();
  }
  EXPECT_TRUE(heard.comes("2:3"));
  holdStreams(false);
  EXPECT_TRUE(heard.comes("nothing"));
  EXPECT_EQ(heard.all,
            (std::vector<std::string>{"2:3", "2:4", "2:7", "nothing"}));
  device.setListener(std::nullopt);
}

TEST_F(Cuda, AListenerIsToldOfAHang) {
  ListenerCalls heard;
  CudaDevice device({});
  auto queue = device.makeQueue("q");
  device.setListener(heard.listener(50ms));
  holdStreams(true);
  device.setInstruction(0, 1);
  queue->record();
  EXPECT_TRUE(heard.comes("timed out after 0.05 s waiting for the GPU to end"));
  holdStreams(false);
  device.setListener(std::nullopt);
}
} // namespace
