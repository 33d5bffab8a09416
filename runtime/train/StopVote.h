//===- StopVote.h - Ranks agree to stop -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of several hosts share no status page, so they vote. While a step runs,
// an all-reduce counts the ranks that want to stop. All ranks see the same
// count, a step later.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STOPVOTE_H

#include "runtime/transport/Transport.h"

#include <functional>

namespace chimera::runtime {

class StopVote {
public:
  /// `group` is a number that no other all-reduce of the transport has; `wants`
  /// tells whether this rank was asked to stop. The arguments must outlive
  /// this.
  StopVote(Transport &transport, uint32_t group, std::function<bool()> wants,
           std::chrono::milliseconds timeout);

  /// Whether the next step may begin. Every rank asks before it begins a step,
  /// and gets the same answers. Throws what waits throw.
  bool mayBegin();

  /// Completes the vote that is under way. Every rank must call it after the
  /// same number of steps.
  void finish();

private:
  Transport &transport;
  ReduceGroup everyone;
  const std::function<bool()> wants;
  const std::chrono::milliseconds timeout;
  /// This rank's vote, a number, and after the wait the sum of all.
  Block sum = makeBlock(sizeof(uint64_t));
  std::unique_ptr<Request> underWay;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
