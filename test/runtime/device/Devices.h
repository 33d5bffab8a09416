//===- Devices.h - Devices for the conformance suite ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H
#define CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H

#include "runtime/device/Device.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime::test {

/// A timeout for waits that must not time out.
inline constexpr std::chrono::seconds kTimeout(100);

/// A device to test with.
struct DeviceUnderTest {
  std::shared_ptr<Device> device;
  /// Whether a function on the host can access the memory of the device.
  bool worksOnHost = true;
  /// Returns the faults that the device has detected in its use.
  std::function<std::vector<std::string>()> faults = [] {
    return std::vector<std::string>();
  };
};

struct DeviceKind {
  std::string name;
  std::function<DeviceUnderTest()> make;
};
/// The kinds of devices that this test binary tests: the host and simulated
/// devices (HostDevices.cpp), or CUDA with the software GPU or a real one
/// (CudaDevices.cpp).
std::vector<DeviceKind> deviceKinds();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H
