//===- StopVote.h - Ranks agree to stop -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of several hosts share no status page, so they vote. Before each step
// every rank tells rank 0 whether it was asked to stop; rank 0 tells the others
// in the next one whether any was, and they hear that in the one after. By then
// the words have long arrived: nobody waits for them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
#define CHIMERA_RUNTIME_TRAIN_STOPVOTE_H

#include "runtime/control/Control.h"

#include <functional>

namespace chimera::runtime {

class StopVote {
public:
  /// `wants` tells whether this rank was asked to stop. The arguments must
  /// outlive this.
  StopVote(Control &control, std::function<bool()> wants,
           std::chrono::milliseconds timeout);

  /// Whether the next step may begin. Every rank asks before it begins a step,
  /// and gets the same answers. Throws what waits throw.
  bool mayBegin();

  /// Receives what was sent and not received yet. Every rank must call it,
  /// once, after the same number of steps.
  void finish();

private:
  void decide();
  void hearVotes();
  bool hearDecision();

  Control &control;
  const std::function<bool()> wants;
  const std::chrono::milliseconds timeout;
  bool hasVoted = false;  ///< since the votes were heard
  bool isDecided = false; ///< since the decision was heard
  // At rank 0: whether any rank was heard to want it, and what the others were
  // told last.
  bool isWanted = false, decision = false;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_STOPVOTE_H
