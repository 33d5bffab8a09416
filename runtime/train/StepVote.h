//===- StepVote.h - A vote before each step ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A vote on stopping a run, or on writing a checkpoint. It is for ranks on
// several hosts, which share no status page. Before each step, every rank tells
// rank 0 whether it was asked for one of the two. One step later, rank 0 tells
// the other ranks its decision: yes if any rank was asked. Another step later,
// they receive the decision and obey it. So each message has a whole step to
// arrive, and usually no rank waits for it. The messages also have what each
// rank used in its last step, and what all ranks used together.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STEPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STEPVOTE_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/StepUse.h"
#include "runtime/watch/StatusPage.h"

#include <atomic>
#include <functional>

namespace chimera::runtime {

class StepVote {
public:
  /// `wantsToStop` returns whether this rank was asked to stop. `ownUse`
  /// returns what this rank used in its last step. `control`, and everything
  /// that the functions use, must outlive this object.
  StepVote(Control &control, std::function<bool()> wantsToStop,
           std::function<StepUse()> ownUse, std::chrono::milliseconds timeout);

  /// Asks for a checkpoint. Any thread may call this, any number of times. All
  /// requests before the next checkpoint lead to one checkpoint.
  void askToSave() { isAskedToSave.store(true); }

  /// Decides what happens before the next step. Every rank calls this before
  /// each step and gets the same answers. After Save, call `finish` before the
  /// checkpoint. Throws the exceptions of waits for other ranks.
  StepDecision decide();

  /// Returns the memory and the share of waiting of all ranks, three steps
  /// before the last step of this rank. The value is empty in the first three
  /// steps and after a checkpoint.
  const StepUse &use() const { return obeyed.use; }

  /// Receives all messages of this vote that have not been received yet. Every
  /// rank must call this before each checkpoint and after the last step.
  /// Requests for a checkpoint then count as fulfilled.
  void finish();

private:
  /// The vote that a rank sends to rank 0, or the decision that rank 0 sends
  /// back.
  struct Vote {
    uint64_t wanted = 0; ///< bits: to stop, to save
    StepUse use = {};
  };

  void add(const Vote &other);
  void sendDecision();
  void receiveVotes();
  void receiveDecision();

  Control &control;
  const std::function<bool()> wantsToStop;
  const std::function<StepUse()> ownUse;
  const std::chrono::milliseconds timeout;
  std::atomic<bool> isAskedToSave = false;
  bool hasVoted = false;  ///< rank 0 has not received the last votes
  bool isDecided = false; ///< the last decision has not been received
  Vote obeyed;            ///< the last decision that has been received
  // At rank 0: all votes that have not been obeyed, and the last decision that
  // was sent to the others.
  Vote votes, decision;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STEPVOTE_H
