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

StopVote::StopVote(Control &control, std::function<bool()> wants,
                   std::chrono::milliseconds timeout)
    : control(control), wants(std::move(wants)), timeout(timeout) {}

bool StopVote::mayBeginStep() {
  if (std::exchange(isDecided, false) && receiveDecision())
    return false;
  if (hasVoted) {
    decide();
    isDecided = true;
  }
  if (control.rank() == 0)
    isWanted |= wants();
  else
    sendValue(control, 0, uint8_t(wants()), timeout);
  hasVoted = true;
  return true;
}

/// At rank 0, receives the votes of the previous step and sends the decision to
/// the other ranks. Does nothing at the other ranks.
void StopVote::decide() {
  if (control.rank() != 0)
    return;
  receiveVotes();
  decision = isWanted;
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    sendValue(control, rank, uint8_t(decision), timeout);
}

void StopVote::receiveVotes() {
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    isWanted |= receiveValue<uint8_t>(control, rank, timeout) != 0;
}

bool StopVote::receiveDecision() {
  return control.rank() == 0 ? decision
                             : receiveValue<uint8_t>(control, 0, timeout) != 0;
}

void StopVote::finish() {
  if (std::exchange(isDecided, false))
    receiveDecision();
  if (std::exchange(hasVoted, false) && control.rank() == 0)
    receiveVotes();
}
