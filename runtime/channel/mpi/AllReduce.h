//===- AllReduce.h - An ordered all-reduce over messages --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI_Allreduce sums in an order of its own. Here every member owns a chunk of
// the elements: it gets that chunk of every contribution, folds them in the
// declared order and sends the result to all. A member sends and receives about
// twice the bytes of the sum for one contribution a member, as the best
// algorithms do, and every pair of members exchanges two messages.
//
// It folds a slice at a time, so as not to hold up for long who drives it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/Sum.h"

#include <map>

namespace chimera::runtime::mpi {

/// Memory of all-reduces that are done, for others of the same sizes: memory
/// from the system costs a page fault each 4 KiB, a quarter of an all-reduce's
/// time. Nothing is in it.
class Scratch {
public:
  Block take(uint64_t bytes);
  void giveBack(uint64_t bytes, Block memory) {
    spare.emplace(bytes, std::move(memory));
  }

private:
  std::multimap<uint64_t, Block> spare;
};

class AllReduce final : public Sum {
public:
  /// Contributions are exchanged on `scatter`. Members must advance the
  /// all-reduces of a group for the first time in one order.
  AllReduce(const ReduceGroup &group, uint32_t self, ElementType type,
            std::vector<ConstBytes> given, Bytes sum, MPI_Comm scatter,
            MPI_Comm gather, Scratch &scratch);
  ~AllReduce() override;

  /// Of the two exchanges the second waits until it is in turn.
  void advance(bool inTurn) override;
  bool postedAll() const override { return phase >= Gather; }
  bool done() const override { return phase == Done; }

private:
  struct Range {
    uint64_t begin, end;
    uint64_t size() const { return end - begin; }
  };
  Range chunkOf(size_t member) const;
  void postScatter();
  void foldSlice();
  void postGather();

  uint32_t self;
  ElementType type;
  std::vector<uint32_t> members;
  size_t place = 0; // of this rank among the members
  Bytes sum;
  MPI_Comm scatter, gather;
  Scratch &scratch;
  enum { Start, Scatter, Fold, Gather, Done } phase = Start;
  uint64_t folded = 0; // bytes of the own chunk
  std::vector<MPI_Request> sends;
  std::vector<MPI_Request> receives;
  // For each contribution: who gives it, and this rank's own in whole, or its
  // chunk of another's.
  std::vector<uint32_t> givers;
  std::vector<const std::byte *> own;
  std::vector<Block> others;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
