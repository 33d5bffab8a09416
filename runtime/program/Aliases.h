//===- Aliases.h - Files that say more than they hold -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_ALIASES_H
#define CHIMERA_RUNTIME_PROGRAM_ALIASES_H

#include "runtime/program/program_generated.h"

#include <cstdint>

namespace chimera::program {

/// Whether tables, lists and texts of `content` must share bytes: each counted
/// as often as something refers to it, they take more than `bytes`, which is
/// the size of the FlatBuffer. A small file could otherwise refer to one long
/// list ten thousand times, and reading would copy it ten thousand times.
/// Requires a FlatBuffer that its verifier accepts. Looks at no more than
/// `bytes` references.
bool hasAliases(const Program &content, uint64_t bytes);

/// Whether each list begins where its entries can be read. The FlatBuffers
/// verifier looks only at the 32 bits of the length before it. Requires the
/// same, and stops where `hasAliases` is true.
bool areListsAligned(const Program &content, uint64_t bytes);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_ALIASES_H
