//===- CudaDevices.cpp - Devices of CUDA ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"
#include "test/runtime/device/Devices.h"

using namespace chimera::runtime;

std::vector<test::DeviceKind> test::deviceKinds() {
  auto make = [](bool worksOnHost) {
    return DeviceUnderTest{.device = std::make_shared<cuda::CudaDevice>(
                               cuda::DeviceOptions{.worksOnHost = worksOnHost}),
                           .worksOnHost = worksOnHost};
  };
  return {{"Cuda", [=] { return make(false); }},
          {"CudaWithWorkOnTheHost", [=] { return make(true); }}};
}
