//===- Host.h - The device that is the host itself --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_HOST_H
#define CHIMERA_RUNTIME_DEVICE_HOST_H

#include "runtime/device/Device.h"

namespace chimera::runtime {

/// Makes the synchronous device whose memory is the host's. Its queues execute
/// every operation immediately, so every event has passed and nothing blocks.
/// If the work of an operation throws an exception, the call of launch throws
/// it.
std::unique_ptr<Device> makeHostDevice();

/// A queue of the host device. Any thread may use it at any time.
Queue &hostQueue();

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_HOST_H
