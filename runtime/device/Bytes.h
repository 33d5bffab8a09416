//===- Bytes.h - Memory and what lies in it ---------------------*- C++ -*-===//
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

/// A range of a device's memory or of the host's. Only on the host device are
/// both the same; elsewhere the host must not follow the address of a device.
using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// What the bytes of weights, gradients and losses are, for summing them.
/// UInt64 sums are modulo 2^64.
enum class ElementType { Float32, Float64, UInt64 };

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BYTES_H
