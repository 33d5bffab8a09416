//===- Bytes.h - Ranges of memory and types of elements ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_BYTES_H
#define CHIMERA_RUNTIME_DEVICE_BYTES_H

#include <cstddef>
#include <span>

namespace chimera::runtime {

/// A range of the memory of a device or of the host. The host must not
/// dereference addresses of a device, unless the device is the host device.
using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// The type of the elements that an all-reduce sums: of weights, gradients and
/// losses. Sums of UInt64 are modulo 2^64.
enum class ElementType { Float32, Float64, BFloat16, UInt64 };

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BYTES_H
