//===- FileFormats.h - Files that are no text and no tokens -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formats that people give as training data by mistake. Read as bytes or as
// plain numbers, such a file trains without an error, on what is not meant.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace chimera::runtime {

/// What a file was taken for: text, or numbers of tokens one after another.
enum class TakenFor { Text, Tokens };

/// So many bytes of a file's begin decide; fewer if the file has fewer.
inline constexpr size_t kHeadBytes = 512;

/// What `head` is the begin of, and what to do with such a file, for a message:
/// "a NumPy array (.npy): write …". `last` is the file's last byte, `size` its
/// bytes. Empty for a file of no known format. A format that only few bits tell
/// is known among texts alone: tokens may begin with any bits.
std::string knownFormat(std::span<const std::byte> head, std::byte last,
                        uint64_t size, TakenFor takenFor);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_FILEFORMATS_H
