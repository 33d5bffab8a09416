//===- FileFormats.h - Files that are neither text nor tokens ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// File formats that users pass as training data by mistake. If such a file were
// read as bytes or as plain numbers, a model would be trained on meaningless
// data, without an error message.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_FILEFORMATS_H
#define CHIMERA_RUNTIME_DATA_FILEFORMATS_H

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
/// byte, `size` its size in bytes. Empty if the format is not known. If a
/// format is identified by only a few bits, it is reported only if
/// `assumedFormat` is `Text`: a file of tokens may start with the same bits by
/// chance.
std::string adviceOnFormat(std::span<const std::byte> head, std::byte last,
                           uint64_t size, AssumedFormat assumedFormat);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_FILEFORMATS_H
