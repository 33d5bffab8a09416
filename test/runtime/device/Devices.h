//===- Devices.h - Devices for a test of all of them ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H
#define CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H

#include "runtime/device/Device.h"

#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime::test {

/// A device to test with.
struct MadeDevice {
  std::shared_ptr<Device> device;
  /// Whether work is called where it finds the bytes of the device.
  bool worksOnHost = true;
  /// What the device has to say against its use.
  std::function<std::vector<std::string>()> faults = [] {
    return std::vector<std::string>();
  };
};

struct DeviceKind {
  std::string name;
  std::function<MadeDevice()> make;
};
/// Those of the binary: of the host (HostDevices.cpp), or of CUDA
/// (CudaDevices.cpp), over a stand-in for it or on a GPU.
std::vector<DeviceKind> deviceKinds();

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_DEVICE_DEVICES_H
