//===- ReadAt.h - Reads a range of a file -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_READAT_H
#define CHIMERA_RUNTIME_SYSTEM_READAT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/types.h>

namespace chimera::runtime {

/// Fills `bytes` with the contents of an open file, beginning at `offset`.
/// Returns the number of bytes that were read, which is smaller than
/// bytes.size() if the file ends. Returns -1, with the reason in errno, if
/// reading fails.
ssize_t readAt(int file, uint64_t offset, std::span<std::byte> bytes);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_READAT_H
