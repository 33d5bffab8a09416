//===- OrderedSum.h - An all-reduce in a declared order ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL's all-reduce chooses its own order of summation. Here every member sums
// a share of the elements in the order of the ReduceGroup, and then the members
// exchange their shares. Let S be the size of the sum and s the size of the
// member's share. If each member gives one contribution, each member sends and
// receives 2 (S - s) bytes, as in a ring all-reduce.
//
// The scratch memory for contributions of other members is limited, so a large
// sum is computed in rounds. This class computes which member sums which bytes
// in a round.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_ORDEREDSUM_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_ORDEREDSUM_H

#include "runtime/channel/ReduceGroup.h"

#include <cstdint>
#include <vector>

namespace chimera::runtime::nccl {

class OrderedSum {
public:
  /// Divides a sum of `bytes` bytes into shares. In a round, each member needs
  /// at most `scratch` bytes of scratch memory, but at least 8 bytes for each
  /// contribution of another member.
  OrderedSum(const ReduceGroup &group, uint64_t bytes, uint64_t scratch);

  const std::vector<uint32_t> &members() const { return all; }
  uint64_t rounds() const { return roundCount; }

  /// The bytes that the `member`-th member sums in a round. They are whole
  /// elements, except at the end of the sum. May be empty.
  struct Share {
    uint64_t begin, bytes;
  };
  Share share(uint64_t round, size_t member) const;

  /// The scratch memory in bytes that a member with `own` contributions needs.
  uint64_t scratchOf(uint64_t own) const;

private:
  static constexpr uint64_t kUnit = 8; ///< bytes of the largest element

  std::vector<uint32_t> all;
  uint64_t contributions, bytes, shareBytes, roundCount;
};

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_ORDEREDSUM_H
