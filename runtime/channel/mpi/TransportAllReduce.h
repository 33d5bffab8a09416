//===- TransportAllReduce.h - MPI's own all-reduce --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uses MPI_Iallreduce. MPI chooses the algorithm, and so the order in which it
// adds. Floating-point sums may therefore differ, by rounding, from the left
// fold in the group's order (Channels.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_TRANSPORTALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_TRANSPORTALLREDUCE_H

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/PendingAllReduce.h"

namespace chimera::runtime::mpi {

class TransportAllReduce final : public PendingAllReduce {
public:
  /// An all-reduce over `communicator`, whose ranks are the group's members.
  /// The first call of `advance` starts the MPI operations, so all members must
  /// make the first calls for their all-reduces in the same order.
  TransportAllReduce(const ReduceGroup &group, ElementType type,
                     std::vector<ConstBytes> given, Bytes sum,
                     MPI_Comm communicator)
      : PendingAllReduce(group.id), type(type), given(std::move(given)),
        sum(sum), communicator(communicator) {}
  /// MPI cannot cancel an MPI_Iallreduce in flight, so the destructor calls
  /// mpi::abandon (Calls.h).
  ~TransportAllReduce() override;

  void advance(bool inTurn) override;
  bool postedAll() const override { return true; }
  bool done() const override { return finished; }

private:
  void start();

  ElementType type;
  std::vector<ConstBytes> given; ///< cleared by the first `advance`
  Bytes sum;
  MPI_Comm communicator;
  uint64_t tailBytes = 0; ///< size of the incomplete last element
  Block tail;             ///< the incomplete last element, followed by zeros
  bool finished = false;
  std::vector<MPI_Request> requests;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_TRANSPORTALLREDUCE_H
