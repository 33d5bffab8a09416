//===- Scale.cpp - From sums to means -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Scale.h"

#include "runtime/device/Fold.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

double chimera::runtime::gradientScale(const program::ProgramT &program,
                                       uint32_t microBatches) {
  return 1.0 / (static_cast<double>(microBatches) * program.data_parallel);
}

void chimera::runtime::addShares(ElementType type, ConstBytes shares,
                                 uint32_t parts, Bytes loss) {
  std::vector<const std::byte *> each;
  for (uint32_t part = 0; part < parts; ++part)
    each.push_back(shares.data() + part * loss.size());
  fold(type, each, loss.data(), loss.size());
}

Loss chimera::runtime::readLoss(ConstBytes sum, ElementType type,
                                uint64_t microBatches) {
  uint64_t bits = 0;
  std::memcpy(&bits, sum.data(), std::min(sum.size(), sizeof(bits)));
  double total = 0;
  switch (type) {
  case ElementType::Float32:
    total = std::bit_cast<float>(static_cast<uint32_t>(bits));
    break;
  case ElementType::Float64:
    total = std::bit_cast<double>(bits);
    break;
  case ElementType::UInt64:
    total = static_cast<double>(bits);
    break;
  }
  return {bits, total / static_cast<double>(microBatches)};
}
