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

/// The ranks of an all-reduce. `contributors` has the rank of each
/// contribution. A rank with several contributions occurs several times. The
/// sum is a left fold in this order: ((c0 + c1) + c2) + … `id` is equal at all
/// members and differs between groups.
struct ReduceGroup {
  uint32_t id;
  std::vector<uint32_t> contributors;
};

/// The ranks of a group, each once, ascending.
std::vector<uint32_t> membersOf(const ReduceGroup &group);

/// Checks the arguments of startAllReduce at `rank`. Throws
/// std::invalid_argument if `rank` is not a member, if it does not give as many
/// contributions as the group says, or if a contribution does not have the size
/// of `sum`. Also throws if this size is no multiple of the element's size;
/// UInt64 may have any size.
void checkAllReduce(const ReduceGroup &group, uint32_t rank, ElementType type,
                    std::span<const ConstBytes> given, Bytes sum);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_REDUCEGROUP_H
