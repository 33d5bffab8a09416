//===- Devices.cpp - Queries about devices --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/CudaCall.h"

#include <cstdio>
#include <cstring>

using namespace chimera::runtime::test;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  return cudaRuntimeGetVersion(version);
}

cudaError_t cudaGetDeviceCount(int *count) {
  return callUnrecorded("cudaGetDeviceCount", [&] {
    std::shared_lock lock(gpu().mutex);
    *count = gpu().devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return call(
      "cudaSetDevice", [&] { return text(device); },
      [&] {
        cudaError_t error = deviceError(device);
        if (!error)
          currentDevice = device;
        return error;
      });
}
cudaError_t cudaGetDevice(int *device) {
  return callUnrecorded("cudaGetDevice", [&] {
    *device = currentDevice;
    return deviceError(currentDevice);
  });
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device) {
  return callUnrecorded("cudaDeviceGetAttribute", [&] {
    cudaError_t error = deviceError(device);
    std::shared_lock lock(gpu().mutex);
    *value =
        attribute == cudaDevAttrMultiProcessorCount      ? 2
        : attribute == cudaDevAttrComputeCapabilityMajor ? gpu().capability / 10
        : attribute == cudaDevAttrComputeCapabilityMinor ? gpu().capability % 10
        : attribute == cudaDevAttrMaxThreadsPerBlock     ? 1024
        : attribute == cudaDevAttrWarpSize               ? 32
        : attribute == cudaDevAttrPciBusId               ? device + 1
        : attribute == cudaDevAttrUnifiedAddressing      ? 1
                                                         : 0;
    return error;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  return callUnrecorded("cudaGetDeviceProperties", [&] {
    cudaError_t error = deviceError(device);
    std::shared_lock lock(gpu().mutex);
    *properties = {};
    std::strcpy(properties->name, "Software GPU");
    properties->uuid.bytes[0] = static_cast<char>(device + 1);
    properties->totalGlobalMem = gpu().memoryBytes;
    properties->major = gpu().capability / 10;
    properties->minor = gpu().capability % 10;
    properties->multiProcessorCount = 2;
    properties->maxThreadsPerBlock = 1024;
    properties->warpSize = 32;
    properties->pciBusID = device + 1;
    properties->unifiedAddressing = 1;
    return error;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
  return callUnrecorded("cudaDeviceGetPCIBusId", [&] {
    std::snprintf(id, static_cast<size_t>(length), "0000:%02X:00.0",
                  static_cast<unsigned>(device + 1));
    return deviceError(device);
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", noDetail, [&] {
    waitForStreams(currentDevice);
    return failure();
  });
}

} // extern "C"
