//===- Fold.h - The sum that every transport computes -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one definition of an all-reduce's arithmetic. Transports share it, so
// that their results are equal to the last bit.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_FOLD_H
#define CHIMERA_RUNTIME_TRANSPORT_FOLD_H

#include "runtime/transport/Transport.h"

namespace chimera::runtime {

/// Bytes of one element.
uint64_t bytesOf(ElementType type);

/// Writes the left fold ((c0 + c1) + c2) + … of `contributions`, each of
/// `bytes` bytes, to `sum`, which may be one of them but must not overlap one
/// otherwise. No alignment is needed. Bytes after the last whole element of
/// UInt64 are summed as one shorter number; of floating-point types there must
/// be none (see checkAllReduce). Requires at least one contribution.
void fold(ElementType type, std::span<const std::byte *const> contributions,
          std::byte *sum, uint64_t bytes);

/// Throws std::invalid_argument unless a member that gives `given`
/// contributions of the right sizes may start an all-reduce.
void checkAllReduce(const ReduceGroup &group, uint32_t rank, ElementType type,
                    std::span<const ConstBytes> given, Bytes sum);

/// The ranks of a group, each once, ascending.
std::vector<uint32_t> membersOf(const ReduceGroup &group);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRANSPORT_FOLD_H
