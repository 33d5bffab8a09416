//===- ReduceGroup.h - Ranks that sum ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_REDUCEGROUP_H
#define CHIMERA_RUNTIME_CHANNEL_REDUCEGROUP_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <vector>

namespace chimera::runtime {

/// A group of ranks that sum. The sum is the left fold over `contributions`,
/// each the rank that gives it; a rank may give several. `id` is equal at all
/// members and different for different groups.
struct ReduceGroup {
  uint32_t id;
  std::vector<uint32_t> contributions;
};

/// The ranks of a group, each once, ascending.
std::vector<uint32_t> membersOf(const ReduceGroup &group);

/// Throws std::invalid_argument unless a member that gives `given`
/// contributions of the right sizes may start an all-reduce.
void checkAllReduce(const ReduceGroup &group, uint32_t rank, ElementType type,
                    std::span<const ConstBytes> given, Bytes sum);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_REDUCEGROUP_H
