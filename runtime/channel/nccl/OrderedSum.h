//===- OrderedSum.h - An all-reduce in a declared order ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL's own all-reduce sums in an order of its choice. Here every member sums
// a share of the elements, in the declared order, and then they exchange what
// they summed. Each sends and receives as many bytes as in a ring: twice the
// sum's, less a member's share.
//
// The scratch memory for what others contribute is limited, so a large sum goes
// in rounds. This file says who sends what in a round.
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
  /// Of `bytes` bytes. A round takes at most `scratch` bytes of scratch memory
  /// at any member, or those for one unit of 8 bytes.
  OrderedSum(const ReduceGroup &group, uint64_t bytes, uint64_t scratch);

  const std::vector<uint32_t> &members() const { return all; }
  uint64_t rounds() const { return roundCount; }

  /// What the `member`-th member sums in a round: whole elements, but at the
  /// end of the sum; may be empty.
  struct Share {
    uint64_t begin, bytes;
  };
  Share share(uint64_t round, size_t member) const;

  /// The most bytes of scratch memory that a member that gives `own`
  /// contributions needs.
  uint64_t scratchOf(uint64_t own) const;

private:
  static constexpr uint64_t kUnit = 8; ///< bytes of the largest element

  std::vector<uint32_t> all;
  uint64_t contributions, bytes, shareBytes, roundCount;
};

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_ORDEREDSUM_H
