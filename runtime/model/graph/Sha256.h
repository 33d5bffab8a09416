//===- Sha256.h - The SHA-256 of bytes --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_SHA256_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_SHA256_H

#include <cstddef>
#include <span>
#include <string>

namespace chimera::runtime {

/// The SHA-256 (FIPS 180-4) of the bytes, as 64 hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_SHA256_H
