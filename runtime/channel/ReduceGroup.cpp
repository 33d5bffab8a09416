//===- ReduceGroup.cpp - The ranks of an all-reduce -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/ReduceGroup.h"

#include "runtime/device/Fold.h"

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace chimera::runtime;

void chimera::runtime::checkAllReduce(const ReduceGroup &group, uint32_t rank,
                                      ElementType type,
                                      std::span<const ConstBytes> given,
                                      Bytes sum) {
  auto expected =
      std::count(group.contributors.begin(), group.contributors.end(), rank);
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
  if (type != ElementType::UInt64 && sum.size() % elementBytes(type))
    throw std::invalid_argument(where + "expected a multiple of " +
                                std::to_string(elementBytes(type)) +
                                " bytes, got " + std::to_string(sum.size()));
}

std::vector<uint32_t> chimera::runtime::membersOf(const ReduceGroup &group) {
  std::vector<uint32_t> members = group.contributors;
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}
