//===- StepVote.cpp - A vote before each step -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepVote.h"

#include "runtime/control/Messages.h"

#include <utility>

using namespace chimera::runtime;

/// The bits of a vote and of a decision.
static constexpr uint64_t kStop = 1, kSave = 2;

StepVote::StepVote(Control &control, std::function<bool()> wantsToStop,
                   std::function<StepUse()> ownUse,
                   std::chrono::milliseconds timeout)
    : control(control), wantsToStop(std::move(wantsToStop)),
      ownUse(std::move(ownUse)), timeout(timeout) {}

StepDecision StepVote::decide() {
  if (std::exchange(isDecided, false)) {
    receiveDecision();
    if (obeyed.wanted != 0)
      return (obeyed.wanted & kStop) != 0 ? StepDecision::Stop
                                          : StepDecision::Save;
  }
  if (hasVoted) {
    sendDecision();
    isDecided = true;
  }
  const Vote own = {(wantsToStop() ? kStop : 0) |
                        (isAskedToSave.load() ? kSave : 0),
                    ownUse()};
  if (control.rank() == 0)
    add(own);
  else
    sendValue(control, 0, own, timeout);
  hasVoted = true;
  return StepDecision::Begin;
}

/// Adds the vote of a rank, at rank 0.
void StepVote::add(const Vote &other) {
  votes.wanted |= other.wanted;
  votes.use.add(other.use);
}

/// At rank 0, receives the votes of the previous step and sends the decision to
/// the other ranks. Does nothing at the other ranks.
void StepVote::sendDecision() {
  if (control.rank() != 0)
    return;
  receiveVotes();
  decision = votes;
  votes.use = {};
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    sendValue(control, rank, decision, timeout);
}

void StepVote::receiveVotes() {
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    add(receiveValue<Vote>(control, rank, timeout));
}

void StepVote::receiveDecision() {
  obeyed =
      control.rank() == 0 ? decision : receiveValue<Vote>(control, 0, timeout);
}

void StepVote::finish() {
  // The requests came before the checkpoint that is now written.
  isAskedToSave.store(false);
  if (std::exchange(isDecided, false))
    receiveDecision();
  if (std::exchange(hasVoted, false) && control.rank() == 0)
    receiveVotes();
  // A request to stop stays until it is obeyed.
  votes = {votes.wanted & kStop, {}};
}
