//===- HostDevices.cpp - The host, and simulated devices ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Host.h"
#include "runtime/device/simulated/Simulation.h"
#include "test/runtime/device/Devices.h"

using namespace chimera::runtime;

/// The host, and simulated devices with several seeds.
std::vector<test::DeviceKind> test::deviceKinds() {
  std::vector<DeviceKind> kinds = {
      {"Host", [] { return DeviceUnderTest{.device = makeHostDevice()}; }}};
  for (uint64_t seed = 1; seed <= 5; ++seed)
    kinds.push_back({"Simulated" + std::to_string(seed), [seed] {
                       auto all = std::make_shared<simulated::Simulation>(
                           simulated::Options{.seed = seed});
                       return DeviceUnderTest{.device = {all, &all->device(0)},
                                              .faults = [all = all.get()] {
                                                return all->violations();
                                              }};
                     }});
  return kinds;
}
