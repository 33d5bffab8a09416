//===- Sum.h - An all-reduce under way --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_SUM_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_SUM_H

#include <cstdint>

namespace chimera::runtime::mpi {

/// A state machine that its rank's waits, or the progress thread, drive. It
/// never blocks.
class Sum {
public:
  explicit Sum(uint32_t group) : tag(group) {}
  virtual ~Sum() = default;
  Sum(const Sum &) = delete;
  Sum &operator=(const Sum &) = delete;

  /// Advances as far as it goes without waiting; MPI learns of it by the first
  /// call. Only when `inTurn` may it post the last of its messages: those of
  /// one group are posted in the order in which the all-reduces were started,
  /// or their messages would mix.
  virtual void advance(bool inTurn) = 0;

  /// Whether it has posted all of its messages.
  virtual bool postedAll() const = 0;
  virtual bool done() const = 0;

  uint32_t group() const { return tag; }

protected:
  const uint32_t tag;
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_SUM_H
