//===- Collective.h - MPI's own all-reduce ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI_Iallreduce, which chooses its algorithm and with it the order of the sum:
// floating-point results differ from the declared fold by rounding.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_COLLECTIVE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_COLLECTIVE_H

#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/Sum.h"

namespace chimera::runtime::mpi {

class Collective final : public Sum {
public:
  /// Sums over `communicator`, whose members are the group's. Those must
  /// advance its all-reduces for the first time in one order.
  Collective(const ReduceGroup &group, ElementType type,
             std::vector<ConstBytes> given, Bytes sum, MPI_Comm communicator)
      : Sum(group.id), type(type), given(std::move(given)), sum(sum),
        communicator(communicator) {}
  /// What is under way cannot be cancelled: see Calls.h.
  ~Collective() override;

  void advance(bool inTurn) override;
  bool postedAll() const override { return true; }
  bool done() const override { return finished; }

private:
  void start();

  ElementType type;
  std::vector<ConstBytes> given; ///< none, once that was added and started
  Bytes sum;
  MPI_Comm communicator;
  uint64_t tailBytes = 0; ///< after the last whole element
  Block tail;             ///< they, as a number
  bool finished = false;
  std::vector<MPI_Request> requests;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_COLLECTIVE_H
