//===- Heap.h - A first-fit heap for buffers --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATE_HEAP_H
#define CHIMERA_PASSES_ALLOCATE_HEAP_H

#include "runtime/program/Program.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace chimera {

/// Manages a range of bytes. The range grows at its end, and has gaps where
/// values were freed.
class Heap {
public:
  /// Offsets are multiples of this.
  static constexpr int64_t kAlignment = program::kBufferAlignment;

  /// Allocates `bytes` in the first gap that is large enough, or at the end.
  /// Returns the offset of the allocated bytes.
  int64_t allocate(int64_t bytes) {
    bytes = llvm::alignTo(bytes, kAlignment);
    count(bytes);
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      auto [offset, room] = *gap;
      if (room < bytes)
        continue;
      gaps.erase(gap);
      if (room > bytes)
        gaps.emplace(offset + bytes, room - bytes);
      return offset;
    }
    end += bytes;
    return end - bytes;
  }

  /// Allocates `bytes` at the end, where no value has been before. Returns
  /// their offset.
  int64_t append(int64_t bytes) {
    bytes = llvm::alignTo(bytes, kAlignment);
    count(bytes);
    end += bytes;
    return end - bytes;
  }

  void release(int64_t offset, int64_t bytes) {
    bytes = llvm::alignTo(bytes, kAlignment);
    count(-bytes);
    auto gap = gaps.emplace(offset, bytes).first;
    auto next = std::next(gap);
    if (next != gaps.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps.erase(next);
    }
    if (gap == gaps.begin())
      return;
    auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      gaps.erase(gap);
    }
  }

  int64_t size() const { return end; }

  /// The largest number of bytes that were in use at the same time.
  int64_t maxInUse() const { return most; }

private:
  void count(int64_t bytes) {
    taken += bytes;
    most = std::max(most, taken);
  }

  std::map<int64_t, int64_t>
      gaps; ///< bytes of each gap, by offset; no two gaps are adjacent
  int64_t end = 0;
  int64_t taken = 0, most = 0;
};

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATE_HEAP_H
