//===- PendingAllReduce.h - An all-reduce in flight -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_PENDINGALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_PENDINGALLREDUCE_H

#include <cstdint>

namespace chimera::runtime::mpi {

/// An all-reduce as a state machine that never blocks. The waits of its rank or
/// the progress thread advance it.
class PendingAllReduce {
public:
  explicit PendingAllReduce(uint32_t group) : tag(group) {}
  virtual ~PendingAllReduce() = default;
  PendingAllReduce(const PendingAllReduce &) = delete;
  PendingAllReduce &operator=(const PendingAllReduce &) = delete;

  /// Advances as far as possible without waiting. The first call starts the MPI
  /// operations. The messages of the last exchange are posted only if `inTurn`
  /// is true: the all-reduces of a group must post these messages in the order
  /// in which the all-reduces were started, because the messages have the same
  /// tag.
  virtual void advance(bool inTurn) = 0;

  /// Whether the all-reduce has posted all of its messages.
  virtual bool postedAll() const = 0;
  virtual bool done() const = 0;

  uint32_t group() const { return tag; }

protected:
  const uint32_t tag;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_PENDINGALLREDUCE_H
