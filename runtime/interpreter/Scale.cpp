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
#include <stdexcept>
#include <string>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;

double chimera::runtime::totalWeight(const program::ProgramT &program,
                                     DataSource &data, uint64_t step,
                                     uint32_t first, uint32_t count) {
  const uint64_t each = program.micro_batches;
  double total = 0;
  for (uint64_t copy = 0; copy < program.data_parallel; ++copy)
    for (uint64_t m = first; m < uint64_t{first} + count; ++m)
      total += data.lossWeight(
          {.step = step + m / each, .index = copy * each + m % each});
  return total;
}

double chimera::runtime::gradientScale(const program::ProgramT &program,
                                       DataSource &data, uint64_t step,
                                       uint32_t first, uint32_t count) {
  const double weight = totalWeight(program, data, step, first, count);
  return weight > 0 ? 1 / weight : 0;
}

void chimera::runtime::addLossesOfParts(ElementType type, ConstBytes shares,
                                        uint32_t parts, Bytes loss) {
  std::vector<const std::byte *> each;
  for (uint32_t part = 0; part < parts; ++part)
    each.push_back(shares.data() + part * loss.size());
  fold(type, each, loss.data(), loss.size());
}

double chimera::runtime::evaluationLoss(double sum, double weight) {
  if (!(weight > 0))
    throw std::runtime_error(
        "expected held-out data with labels that count, got none: give more "
        "of it (--evaluate-samples)");
  return sum / weight;
}

Loss chimera::runtime::readLoss(ConstBytes sum, ElementType type,
                                double weight) {
  if (!(weight >= 0))
    throw std::runtime_error(
        "expected a weight of at least 0 for the labels of a step, got " +
        std::to_string(weight));
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
  case ElementType::BFloat16:
    total = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    break;
  case ElementType::UInt64:
    total = static_cast<double>(bits);
    break;
  }
  if (weight == 0)
    return {bits, 0, /*hasWeight=*/false};
  return {bits, total / weight};
}
