//===- Reordering.cpp - A global order of actions -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Reordering.h"

using namespace mlir;

namespace chimera {

std::vector<std::vector<schedule::ActionRef>>
splitBySection(std::vector<schedule::ActionRef> order,
               const schedule::Schedule &schedule) {
  std::vector<std::vector<schedule::ActionRef>> sections;
  if (schedule.bodies.empty()) {
    sections.push_back(std::move(order));
    return sections;
  }
  sections.resize(3);
  for (const schedule::ActionRef &ref : order) {
    const schedule::Schedule::Body &body = schedule.bodies[ref.worker];
    sections[ref.index < body.begin ? 0
             : ref.index < body.end ? 1
                                    : 2]
        .push_back(ref);
  }
  return sections;
}

bool mayBeBetweenActions(Operation &op, schedule::Updates updates) {
  if (isa<LoadOp, CopyOp, ActionOp>(op))
    return true;
  if (updates != schedule::Updates::EachMicroBatch)
    return false;
  auto reduce = dyn_cast<AllReduceOp>(op);
  return isa<OptimizerStepOp>(op) || (reduce && !reduce.sumsLosses());
}

SmallVector<Operation *, 2> reductionAndUpdateOf(Value sum) {
  SmallVector<Operation *, 2> ops;
  for (Operation *user : sum.getUsers())
    if (isa<AllReduceOp, OptimizerStepOp>(user)) {
      ops.push_back(user);
      if (isa<AllReduceOp>(user))
        llvm::append_range(ops, reductionAndUpdateOf(user->getResult(0)));
    }
  return ops;
}

} // namespace chimera
