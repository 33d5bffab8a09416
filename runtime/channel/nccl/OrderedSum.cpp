//===- OrderedSum.cpp - An all-reduce in a declared order -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/OrderedSum.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::nccl;

static uint64_t ceilingOf(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

OrderedSum::OrderedSum(const ReduceGroup &group, uint64_t bytes,
                       uint64_t scratch)
    : all(membersOf(group)), contributions(group.contributors.size()),
      bytes(bytes) {
  uint64_t even =
      std::max<uint64_t>(1, ceilingOf(ceilingOf(bytes, kUnit), all.size()));
  uint64_t most = std::max<uint64_t>(1, scratch / contributions / kUnit);
  shareBytes = std::min(even, most) * kUnit;
  roundCount = ceilingOf(bytes, shareBytes * all.size());
}

OrderedSum::Share OrderedSum::share(uint64_t round, size_t member) const {
  uint64_t begin = (round * all.size() + member) * shareBytes;
  begin = std::min(begin, bytes);
  return {begin, std::min(shareBytes, bytes - begin)};
}

uint64_t OrderedSum::scratchOf(uint64_t own) const {
  return (contributions - own) * std::min(shareBytes, bytes);
}
