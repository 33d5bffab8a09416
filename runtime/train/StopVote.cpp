//===- StopVote.cpp - A vote to stop --------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StopVote.h"

#include "runtime/control/Messages.h"

#include <utility>

using namespace chimera::runtime;

StopVote::StopVote(Control &control, std::function<Vote()> vote,
                   std::chrono::milliseconds timeout)
    : control(control), vote(std::move(vote)), timeout(timeout) {}

bool StopVote::mayBeginStep() {
  if (std::exchange(isDecided, false) && receiveDecision())
    return false;
  if (hasVoted) {
    decide();
    isDecided = true;
  }
  if (control.rank() == 0)
    add(vote());
  else
    sendValue(control, 0, vote(), timeout);
  hasVoted = true;
  return true;
}

/// Adds the vote of a rank, at rank 0.
void StopVote::add(const Vote &other) {
  wanted.stops |= other.stops;
  wanted.use.add(other.use);
}

/// At rank 0, receives the votes of the previous step and sends the decision to
/// the other ranks. Does nothing at the other ranks.
void StopVote::decide() {
  if (control.rank() != 0)
    return;
  receiveVotes();
  decision = wanted;
  wanted.use = {};
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    sendValue(control, rank, decision, timeout);
}

void StopVote::receiveVotes() {
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    add(receiveValue<Vote>(control, rank, timeout));
}

bool StopVote::receiveDecision() {
  obeyed =
      control.rank() == 0 ? decision : receiveValue<Vote>(control, 0, timeout);
  return obeyed.stops != 0;
}

void StopVote::finish() {
  if (std::exchange(isDecided, false))
    receiveDecision();
  if (std::exchange(hasVoted, false) && control.rank() == 0)
    receiveVotes();
}
