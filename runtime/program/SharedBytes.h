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

/// Whether tables, lists and texts of `content` share bytes. `bytes` is the
/// size of the FlatBuffer. The function follows every reference and adds the
/// bytes of the table, list or text. If the sum is larger than `bytes`, some of
/// them share bytes. Without this check, a small file could refer to one long
/// list ten thousand times, and reading the file would make ten thousand copies
/// of the list. Requires a FlatBuffer that the FlatBuffers verifier accepts.
/// Follows at most `bytes` references.
bool sharesBytes(const Program &content, uint64_t bytes);

/// Whether the entries of each list are aligned for their type. The FlatBuffers
/// verifier checks only the alignment of the list's 32-bit length. Requires a
/// FlatBuffer that the verifier accepts. If `sharesBytes` is true, not all
/// lists are checked.
bool areListsAligned(const Program &content, uint64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_SHAREDBYTES_H
