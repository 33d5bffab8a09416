//===- AllReduce.h - An ordered all-reduce over MPI -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI_Allreduce chooses its own order of summation. Here every member owns a
// chunk of the elements. It receives this chunk of every contribution, folds
// the contributions in the order of the ReduceGroup, and sends the result to
// all members. If each member gives one contribution, there are two messages in
// each direction between every pair of members. A member then sends and
// receives about twice the bytes of the sum, as in the best algorithms.
//
// One call of `advance` folds one slice of the chunk, so that the calling
// thread is soon free again.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/PendingAllReduce.h"

#include <map>

namespace chimera::runtime::mpi {

/// A pool of memory for all-reduces. Memory is reused: fresh memory from the
/// kernel costs a page fault for every 4 KiB, which took a quarter of an
/// all-reduce's time. `take` returns memory with undefined contents.
class ScratchPool {
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
  /// Contributions are exchanged on the communicator `scatter`, and sums on
  /// `gather`. The first call of `advance` posts the contributions. All members
  /// must make the first calls for the all-reduces of a group in the same
  /// order.
  AllReduce(const ReduceGroup &group, uint32_t self, ElementType type,
            std::vector<ConstBytes> given, Bytes sum, MPI_Comm scatter,
            MPI_Comm gather, ScratchPool &scratch);
  ~AllReduce() override;

  /// Advances the all-reduce. Begins to fold and to exchange sums only if
  /// `inTurn` is true.
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
  ScratchPool &scratch;
  enum { Start, Scatter, Fold, Gather, Done } phase = Start;
  uint64_t folded = 0; // folded bytes of this rank's chunk
  std::vector<MPI_Request> sends;
  std::vector<MPI_Request> receives;
  // Each has one element for each contribution. `contributors`: its rank.
  // `own`: the contribution if this rank gives it, else null. `others`: this
  // rank's chunk of the contribution if another rank gives it, else null.
  std::vector<uint32_t> contributors;
  std::vector<const std::byte *> own;
  std::vector<Block> others;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_ALLREDUCE_H
