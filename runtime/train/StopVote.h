//===- StopVote.h - A vote to stop ------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A vote on stopping a run. It is for ranks on several hosts, which share no
// status page. Before each step, every rank tells rank 0 whether it was asked
// to stop. One step later, rank 0 tells the others whether any rank was asked.
// Another step later they receive this and act on it. By then the messages have
// arrived, so no rank waits for them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STOPVOTE_H

#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

class StopVote {
public:
  /// `wants` returns whether this rank was asked to stop. `control` must
  /// outlive this object, and so must everything that `wants` uses.
  StopVote(Control &control, std::function<bool()> wants,
           std::chrono::milliseconds timeout);

  /// Whether the next step may begin. Every rank calls this before each step
  /// and gets the same answers. Throws what waits throw.
  bool mayBeginStep();

  /// Receives all messages that have not been received yet. Every rank must
  /// call this once, after the same number of steps.
  void finish();

private:
  void decide();
  void receiveVotes();
  bool receiveDecision();

  Control &control;
  const std::function<bool()> wants;
  const std::chrono::milliseconds timeout;
  bool hasVoted = false;  ///< votes of the last step are not received yet
  bool isDecided = false; ///< the last decision is not received yet
  // At rank 0: whether any rank has voted to stop, and the last decision that
  // was sent to the others.
  bool isWanted = false, decision = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
