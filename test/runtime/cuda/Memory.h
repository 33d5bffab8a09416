//===- Memory.h - Allocations of devices and of the host --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_MEMORY_H
#define CHIMERA_TEST_RUNTIME_CUDA_MEMORY_H

#include <cstddef>

namespace chimera::runtime::test {

/// Whether an operation of the device can access these `bytes` bytes.
bool isInReach(int device, const void *memory, size_t bytes);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_MEMORY_H
