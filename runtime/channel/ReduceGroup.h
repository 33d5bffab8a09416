//===- ReduceGroup.h - The ranks of an all-reduce ---------------*- C++ -*-===//
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

/// The ranks of an all-reduce. The sum is the left fold over `contributions`,
/// which are ranks. A rank occurs once for each of its contributions. `id` is
/// equal at all members and differs between groups.
struct ReduceGroup {
  uint32_t id;
  std::vector<uint32_t> contributions;
};

/// The ranks of a group, each once, ascending.
std::vector<uint32_t> membersOf(const ReduceGroup &group);

/// Throws std::invalid_argument if `rank` is not a member, if the number of
/// contributions differs from the group's, or if a size is wrong.
void checkAllReduce(const ReduceGroup &group, uint32_t rank, ElementType type,
                    std::span<const ConstBytes> given, Bytes sum);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_REDUCEGROUP_H
