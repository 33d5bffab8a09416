//===- Memory.cpp - Memory that the host cannot access --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/simulated/Memory.h"

#include <cstring>
#include <stdexcept>

using namespace chimera::runtime;
using namespace chimera::runtime::simulated;

namespace {
/// Makes addresses invalid: in a valid x86-64 or AArch64 address, the upper
/// bits are all equal.
constexpr uint64_t kNowhere = uint64_t(1) << 63;
constexpr unsigned kRankShift = 44;
/// The gap between allocations, so that an overrun does not reach the next
/// allocation.
constexpr uint64_t kGap = 4096;
constexpr int kGarbage = 0xA5; // as a float -2.9e-16, and not a small integer
} // namespace

Memory::Memory(uint32_t rank)
    : base(kNowhere | (uint64_t(rank) << kRankShift)) {}

std::byte *Memory::allocate(uint64_t bytes, uint64_t alignment) {
  uint64_t size = blockBytes(bytes, alignment);
  // The address is an odd multiple of the alignment, so that it is not aligned
  // more strictly than requested.
  next =
      (next + 2 * alignment - 1) / (2 * alignment) * 2 * alignment + alignment;
  Allocation &allocation = allocations[next];
  allocation.size = size;
  allocation.bytes = makeBlock(size, alignment);
  std::memset(allocation.bytes.get(), kGarbage, size);
  allocation.cells[0].end = size;
  uint64_t address = base + next;
  next += size + kGap;
  return reinterpret_cast<std::byte *>(address);
}

void Memory::free(const std::byte *address) {
  allocations.erase(reinterpret_cast<uint64_t>(address) - base);
}

Memory::Allocation &Memory::allocationOf(ConstBytes bytes, uint64_t &offset) {
  uint64_t at = reinterpret_cast<uint64_t>(bytes.data()) - base;
  auto after = allocations.upper_bound(at);
  if (after != allocations.begin()) {
    auto &[begin, allocation] = *std::prev(after);
    offset = at - begin;
    if (offset <= allocation.size && bytes.size() <= allocation.size - offset)
      return allocation;
  }
  throw std::logic_error("uses " + std::to_string(bytes.size()) +
                         " bytes that are not allocated on this device");
}

std::byte *Memory::find(ConstBytes bytes) {
  uint64_t offset = 0;
  Allocation &allocation = allocationOf(bytes, offset);
  return allocation.bytes.get() + offset;
}

/// Splits the cells at both ends of `bytes`, so that `bytes` consists of whole
/// cells. Calls `visit` with each of these cells and its size.
template <typename Visit> void Memory::eachCell(ConstBytes bytes, Visit visit) {
  uint64_t begin = 0;
  auto &cells = allocationOf(bytes, begin).cells;
  uint64_t end = begin + bytes.size();
  auto cut = [&](uint64_t at) {
    auto cell = std::prev(cells.upper_bound(at));
    if (cell->first == at || cell->second.end <= at)
      return;
    Cell rest = cell->second;
    cell->second.end = at;
    cells.emplace(at, std::move(rest));
  };
  cut(begin);
  cut(end);
  for (auto cell = cells.lower_bound(begin);
       cell != cells.end() && cell->first < end; ++cell)
    visit(cell->second, cell->second.end - cell->first);
}

void Memory::recordUse(const Access &access, Stamp stamp, const Clock &clock,
                       const Label &label, std::vector<Violation> &violations) {
  if (access.bytes.empty())
    return;
  bool reads = access.kind != Access::Writes;
  bool writes = access.kind != Access::Reads;
  auto isOwn = [stamp](const Use &other) {
    return other.stamp.thread == stamp.thread &&
           other.stamp.epoch == stamp.epoch;
  };
  eachCell(access.bytes, [&](Cell &cell, uint64_t size) {
    auto compare = [&](const std::vector<Use> &others, bool otherWrites) {
      for (const Use &other : others)
        if (!isOwn(other) && !clock.knows(other.stamp))
          violations.push_back({.label = label,
                                .kind = access.kind,
                                .hasOther = true,
                                .other = other.label,
                                .otherWrites = otherWrites,
                                .bytes = size});
    };
    if (reads && !cell.isWritten)
      violations.push_back(
          {.label = label, .kind = access.kind, .bytes = size});
    compare(cell.writes, true);
    if (writes) {
      compare(cell.reads, false);
      cell.reads.clear();
      cell.writes = {{stamp, label}};
      cell.isWritten = true;
    } else {
      std::erase_if(cell.reads,
                    [&](const Use &other) { return clock.knows(other.stamp); });
      cell.reads.push_back({stamp, label});
    }
  });
}

void Memory::poison(Bytes bytes) {
  if (bytes.empty())
    return;
  std::memset(find(bytes), kGarbage, bytes.size());
  eachCell(bytes, [](Cell &cell, uint64_t) { cell.isWritten = false; });
}

void Memory::setWritten(ConstBytes bytes) {
  if (!bytes.empty())
    eachCell(bytes, [](Cell &cell, uint64_t) { cell.isWritten = true; });
}
