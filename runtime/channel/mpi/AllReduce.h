//===- AllReduce.h - An ordered all-reduce over MPI -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI_Allreduce chooses its own order of summation. Here every member owns a
// chunk of the elements. It receives that chunk of every contribution, folds
// the contributions in the declared order, and sends the result to all members.
// If each member gives one contribution, a member sends and receives about
// twice the bytes of the sum, as in the best algorithms. Between every pair of
// members there are two messages in each direction.
//
// It folds one slice at a time, so that the thread that drives it is not kept
// busy for long.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/PendingAllReduce.h"

#include <map>

namespace chimera::runtime::mpi {

/// A pool of memory for all-reduces. Memory that comes from the kernel costs a
/// page fault for every 4 KiB, which took a quarter of an all-reduce's time.
/// The contents are undefined.
class Scratch {
public:
  Block take(uint64_t bytes);
  void giveBack(uint64_t bytes, Block memory) {
    spare.emplace(bytes, std::move(memory));
  }

private:
  std::multimap<uint64_t, Block> spare;
};

class AllReduce final : public PendingAllReduce {
public:
  /// Contributions are exchanged on `scatter` and sums on `gather`. All members
  /// must make the first `advance` of a group's all-reduces in the same order.
  AllReduce(const ReduceGroup &group, uint32_t self, ElementType type,
            std::vector<ConstBytes> given, Bytes sum, MPI_Comm scatter,
            MPI_Comm gather, Scratch &scratch);
  ~AllReduce() override;

  /// Advances the all-reduce. Starts the second exchange only if `inTurn` is
  /// true.
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
  size_t memberIndex = 0; // index of this rank in `members`
  Bytes sum;
  MPI_Comm scatter, gather;
  Scratch &scratch;
  enum { Start, Scatter, Fold, Gather, Done } phase = Start;
  uint64_t folded = 0; // bytes of the own chunk that are folded
  std::vector<MPI_Request> sends;
  std::vector<MPI_Request> receives;
  // For each contribution: the rank that gives it. For a contribution of this
  // rank, `own` points to it. For any other, `others` has this rank's chunk of
  // it.
  std::vector<uint32_t> contributors;
  std::vector<const std::byte *> own;
  std::vector<Block> others;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
