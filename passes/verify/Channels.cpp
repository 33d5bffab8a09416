//===- Channels.cpp - Matching sends and receives -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Channels.h"

using namespace mlir;

namespace chimera {

LogicalResult verifyAwaited(Operation &op) {
  LogicalResult result = success();
  for (Value transfer : op.getResults())
    if (isa<SendingType, ArrivingType>(transfer.getType()) &&
        !transfer.hasOneUse())
      result =
          op.emitOpError("expected its transfer to be waited for once, got ")
          << llvm::range_size(transfer.getUses()) << " uses";
  return result;
}

void Channels::add(Operation &op, uint32_t worker) {
  if (auto group = dyn_cast<GroupOp>(op))
    for (Operation &post : group.getPosts().front().without_terminator())
      add(post, worker);
  else if (auto send = dyn_cast<PostSendOp>(op))
    channels[{worker, send.getPeer()}].sends.push_back(send);
  else if (auto receive = dyn_cast<PostReceiveOp>(op))
    channels[{receive.getPeer(), worker}].receives.push_back(receive);
}

static bool agree(PostSendOp send, PostReceiveOp receive) {
  return receive.getTransfer().getType().getValue() ==
             send.getValue().getType() &&
         send.getPipeline() == receive.getPipeline() &&
         send.getStage() == receive.getStage() &&
         send.getMicroBatch() == receive.getMicroBatch() &&
         send.getCount() == receive.getCount() &&
         send.getPart() == receive.getPart() &&
         send.getParts() == receive.getParts();
}

/// True if a wait for the receive is before the send in the same block.
static bool isAwaitedBefore(PostSendOp send, PostReceiveOp receive) {
  return llvm::any_of(receive->getUsers(), [&](Operation *wait) {
    return wait->getBlock() == send->getBlock() && wait->isBeforeInBlock(send);
  });
}

LogicalResult Channels::verify() const {
  LogicalResult result = success();
  for (const auto &[channel, posts] : channels) {
    const auto &[from, to] = channel;
    ArrayRef<PostSendOp> sends = posts.sends;
    ArrayRef<PostReceiveOp> receives = posts.receives;
    size_t k = 0, both = std::min(sends.size(), receives.size());
    while (k < both && agree(sends[k], receives[k]) &&
           !isAwaitedBefore(sends[k], receives[k]))
      ++k;
    if (k == sends.size() && k == receives.size())
      continue;
    result = failure();
    if (k == sends.size())
      PostReceiveOp(receives[k])
              .emitOpError("expected a matching send on worker ")
          << from << ", found none";
    else if (k == receives.size())
      PostSendOp(sends[k]).emitOpError("expected a matching receive on worker ")
          << to << ", found none";
    else
      PostSendOp(sends[k])
              .emitOpError(agree(sends[k], receives[k])
                               ? "expected the send before the wait of its "
                                 "matching receive"
                               : "expected the matching receive to have the "
                                 "same type and label")
              .attachNote(PostReceiveOp(receives[k]).getLoc())
          << "the matching receive on worker " << to;
  }
  return result;
}

} // namespace chimera
