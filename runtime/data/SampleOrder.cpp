//===- SampleOrder.cpp - The order of training samples --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/SampleOrder.h"

#include "runtime/random/Random.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// With 8 rounds, tests find no difference from uniformly drawn permutations.
constexpr int kRounds = 8;
/// Permutations of fewer numbers than 2^kFewestBits are part of a permutation
/// of 2^kFewestBits numbers, because rounds on fewer bits mix too little.
constexpr int kFewestBits = 6;
} // namespace

// A Feistel network is a permutation of the numbers with some number of bits.
// In each round, one half of the bits is changed by a hash of the other half.
// Results that are not below `count` are permuted again until one is (cycle
// walking; Black and Rogaway, CT-RSA 2002, method 2). At least half of the
// numbers are below `count`, unless there are very few.
uint64_t chimera::runtime::permute(uint64_t number, uint64_t count,
                                   uint64_t key) {
  if (number >= count)
    throw std::invalid_argument("expected a number below " +
                                std::to_string(count) + ", got " +
                                std::to_string(number));
  const int bits =
      std::max(kFewestBits, static_cast<int>(std::bit_width(count - 1)));
  const int lowBits = bits / 2, highBits = bits - lowBits;
  const uint64_t lowMask = (uint64_t{1} << lowBits) - 1;
  const uint64_t highMask = (uint64_t{1} << highBits) - 1;
  do {
    uint64_t low = number & lowMask, high = number >> lowBits;
    for (uint64_t round = 0; round < kRounds; round += 2) {
      high ^= mix({key, round, low}) & highMask;
      low ^= mix({key, round + 1, high}) & lowMask;
    }
    number = high << lowBits | low;
  } while (number >= count);
  return number;
}

SampleOrder::SampleOrder(uint64_t samples, uint64_t batch, LastBatch last,
                         uint64_t seed)
    : count(samples), batch(batch), last(last), seed(seed) {
  if (batch == 0)
    throw std::invalid_argument(
        "expected a mini-batch of at least one sample, got none");
  if (samples == 0)
    throw std::runtime_error("expected at least one training sample, got none");
  if (last == LastBatch::Drop && samples < batch)
    throw std::runtime_error(
        "expected at least " + std::to_string(batch) +
        " training samples, as many as a mini-batch has, got " +
        std::to_string(samples) +
        ": give more data, compile the program with smaller or fewer "
        "micro-batches, or give --last-batch fill, which repeats samples in a "
        "mini-batch");
}

SampleOfEpoch SampleOrder::sampleAt(uint64_t step, uint64_t position) const {
  if (position >= batch)
    throw std::invalid_argument("expected a position in a mini-batch of " +
                                std::to_string(batch) + " samples, got " +
                                std::to_string(position));
  uint64_t epoch, place;
  if (last == LastBatch::Drop) {
    const uint64_t steps = count / batch;
    epoch = step / steps;
    place = step % steps * batch + position;
  } else {
    const uint64_t all = step * batch + position;
    epoch = all / count;
    place = all % count;
  }
  return {epoch, permute(place, count, mix({seed, kSampleOrder, epoch}))};
}

uint64_t SampleOrder::stepsOf(uint64_t epochs) const {
  uint64_t steps = 0;
  if (last == LastBatch::Drop)
    return __builtin_mul_overflow(epochs, count / batch, &steps) ? UINT64_MAX
                                                                 : steps;
  if (__builtin_mul_overflow(epochs, count, &steps))
    return UINT64_MAX;
  return steps / batch + (steps % batch != 0);
}
