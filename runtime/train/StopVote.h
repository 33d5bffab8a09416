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
// The messages also have what each rank used in its last step, and what all
// ranks used together.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STOPVOTE_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/StepUse.h"

#include <functional>

namespace chimera::runtime {

class StopVote {
public:
  /// A rank's vote, or the decision.
  struct Vote {
    uint64_t stops = 0; ///< 1 if the rank was asked to stop, else 0
    StepUse use = {};   ///< in the rank's last step
  };

  /// `vote` returns the vote of this rank. `control`, and everything that
  /// `vote` uses, must outlive this object.
  StopVote(Control &control, std::function<Vote()> vote,
           std::chrono::milliseconds timeout);

  /// Whether the next step may begin. Every rank calls this before each step
  /// and gets the same answers. Throws the exceptions of waits for other ranks.
  bool mayBeginStep();

  /// What all ranks used three steps before the last step of this rank. Empty
  /// in the first three steps.
  const StepUse &use() const { return obeyed.use; }

  /// Receives all messages of this vote that have not been received yet. Every
  /// rank must call this once, after the last step.
  void finish();

private:
  void add(const Vote &other);
  void decide();
  void receiveVotes();
  bool receiveDecision();

  Control &control;
  const std::function<Vote()> vote;
  const std::chrono::milliseconds timeout;
  bool hasVoted = false;  ///< rank 0 has not received the last votes
  bool isDecided = false; ///< the last decision has not been received
  Vote obeyed;            ///< the last decision that has been received
  // At rank 0: the votes for the next decision together, and the last decision
  // that was sent to the others.
  Vote wanted, decision;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
