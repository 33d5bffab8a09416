//===- PlaceMessages.cpp - Receives in windows, posts in groups -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/communicate/Posts.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PLACEMESSAGESPASS
#include "passes/Passes.h.inc"

namespace {

struct PlaceMessages : impl::PlaceMessagesPassBase<PlaceMessages> {
  using PlaceMessagesPassBase::PlaceMessagesPassBase;

  void runOnOperation() override {
    WorkerOp worker = getOperation();
    const auto window =
        static_cast<int32_t>(worker.getReceiveWindow().value_or(1));
    worker.removeReceiveWindowAttr();
    if (failed(requireProjected(worker)))
      return signalPassFailure();
    if (messages == program::MessageModel::StreamPerDevice)
      groupUpToReceives(worker);
    else if (messages == program::MessageModel::StreamPerPair)
      groupCrossings(worker);
    else if (failed(postInWindow(worker, window)))
      signalPassFailure();
  }
};

} // namespace
} // namespace chimera
