//===- SharedBytes.h - Whether parts of a file share bytes ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_SHAREDBYTES_H
#define CHIMERA_RUNTIME_PROGRAM_SHAREDBYTES_H

#include "runtime/program/program_generated.h"

#include <cstdint>

namespace chimera::program {

/// Whether tables, lists and texts of `content` share bytes: they do if all of
/// them, counted once for every reference, take more than `bytes`, the size of
/// the FlatBuffer. Without this check, a small file could refer to one long
/// list ten thousand times, and reading would make ten thousand copies of it.
/// Requires a FlatBuffer that the FlatBuffers verifier accepts. Looks at no
/// more than `bytes` references.
bool sharesBytes(const Program &content, uint64_t bytes);

/// Whether the entries of each list are aligned for their type. The FlatBuffers
/// verifier checks only the alignment of the 32-bit length before them.
/// Requires a FlatBuffer that the verifier accepts. Stops early if
/// `sharesBytes` is true.
bool areListsAligned(const Program &content, uint64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_SHAREDBYTES_H
