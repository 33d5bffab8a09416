//===- StopVote.h - A vote to stop ------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A vote on stopping a run. It is for ranks on several hosts, which share no
// status page. Before each step, every rank tells rank 0 whether it was asked
// to stop. One step later, rank 0 tells the other ranks its decision: to stop
// if any rank was asked to. Another step later, they receive the decision and
// obey it. So each message has a whole step to arrive, and usually no rank
// waits for it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STOPVOTE_H

#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

class StopVote {
public:
  /// `wants` returns whether this rank was asked to stop. `control`, and
  /// everything that `wants` uses, must outlive this object.
  StopVote(Control &control, std::function<bool()> wants,
           std::chrono::milliseconds timeout);

  /// Whether the next step may begin. Every rank calls this before each step
  /// and gets the same answers. Throws the exceptions of waits for other ranks.
  bool mayBeginStep();

  /// Receives all messages of this vote that have not been received yet. Every
  /// rank must call this once, after the last step.
  void finish();

private:
  void decide();
  void receiveVotes();
  bool receiveDecision();

  Control &control;
  const std::function<bool()> wants;
  const std::chrono::milliseconds timeout;
  bool hasVoted = false;  ///< rank 0 has not received the last votes
  bool isDecided = false; ///< the last decision has not been received
  // At rank 0: whether any rank has voted to stop, and the last decision that
  // was sent to the others.
  bool isWanted = false, decision = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
