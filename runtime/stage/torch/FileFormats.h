//===- FileFormats.h - Files that are neither text nor tokens ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// File formats that users pass as training data by mistake. Read as bytes or as
// plain numbers, such a file would train without an error, on meaningless data.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace chimera::runtime {

/// The assumed content of a file: text, or tokens as plain numbers.
enum class AssumedFormat { Text, Tokens };

/// The number of bytes at the start of a file that identify the format. The
/// file may be shorter.
inline constexpr size_t kHeadBytes = 512;

/// The name of the file's format, and advice, for an error message: "a NumPy
/// array (.npy): write …". `head` is the start of the file, `last` its last
/// byte, `size` its size in bytes. Empty if the format is not known. Formats
/// that are identified by only a few bits are reported only for text, since
/// tokens may start with any bits.
std::string knownFormat(std::span<const std::byte> head, std::byte last,
                        uint64_t size, AssumedFormat assumedFormat);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H
