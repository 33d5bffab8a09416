//===- Fold.cpp - The sum that every transport computes -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Fold.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

uint64_t chimera::runtime::bytesOf(ElementType type) {
  return type == ElementType::Float32 ? 4 : 8;
}

namespace {
/// Folds whole blocks in a local accumulator: all contributions of a block are
/// read before it is written, so the sum may be one of them.
template <typename T>
void foldElements(std::span<const std::byte *const> contributions,
                  std::byte *sum, uint64_t bytes) {
  constexpr uint64_t kBlock = 512;
  T accumulator[kBlock];
  T next[kBlock];
  for (uint64_t at = 0; at < bytes; at += sizeof(accumulator)) {
    uint64_t size = std::min<uint64_t>(sizeof(accumulator), bytes - at);
    uint64_t count = size / sizeof(T);
    std::memcpy(accumulator, contributions[0] + at, size);
    for (const std::byte *contribution : contributions.subspan(1)) {
      std::memcpy(next, contribution + at, size);
      for (uint64_t i = 0; i < count; ++i)
        accumulator[i] += next[i];
    }
    std::memcpy(sum + at, accumulator, size);
  }
}
} // namespace

void chimera::runtime::fold(ElementType type,
                            std::span<const std::byte *const> contributions,
                            std::byte *sum, uint64_t bytes) {
  switch (type) {
  case ElementType::Float32:
    return foldElements<float>(contributions, sum, bytes);
  case ElementType::Float64:
    return foldElements<double>(contributions, sum, bytes);
  case ElementType::UInt64:
    break;
  }
  uint64_t whole = bytes / 8 * 8;
  foldElements<uint64_t>(contributions, sum, whole);
  if (whole == bytes)
    return;
  uint64_t tail = 0;
  for (const std::byte *contribution : contributions) {
    uint64_t next = 0;
    std::memcpy(&next, contribution + whole, bytes - whole);
    tail += next;
  }
  std::memcpy(sum + whole, &tail, bytes - whole);
}

void chimera::runtime::checkAllReduce(const ReduceGroup &group, uint32_t rank,
                                      ElementType type,
                                      std::span<const ConstBytes> given,
                                      Bytes sum) {
  auto expected =
      std::count(group.contributions.begin(), group.contributions.end(), rank);
  std::string where = "all-reduce of group " + std::to_string(group.id) +
                      " at rank " + std::to_string(rank) + ": ";
  if (expected == 0)
    throw std::invalid_argument(where + "expected a member of the group");
  if (static_cast<size_t>(expected) != given.size())
    throw std::invalid_argument(where + "expected " + std::to_string(expected) +
                                " contributions, got " +
                                std::to_string(given.size()));
  for (ConstBytes contribution : given)
    if (contribution.size() != sum.size())
      throw std::invalid_argument(
          where + "expected contributions of " + std::to_string(sum.size()) +
          " bytes as the sum has, got " + std::to_string(contribution.size()));
  if (type != ElementType::UInt64 && sum.size() % bytesOf(type))
    throw std::invalid_argument(where + "expected a multiple of " +
                                std::to_string(bytesOf(type)) + " bytes, got " +
                                std::to_string(sum.size()));
}

std::vector<uint32_t> chimera::runtime::membersOf(const ReduceGroup &group) {
  std::vector<uint32_t> members = group.contributions;
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}
