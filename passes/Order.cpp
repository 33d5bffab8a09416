//===- Order.cpp - A global order of actions ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Order.h"

#include <algorithm>
#include <tuple>

using namespace mlir;

namespace chimera {

std::vector<Turn> globalOrder(const schedule::Timing &timing) {
  std::vector<Turn> order;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    for (size_t i = 0; i < timing.starts[w].size(); ++i)
      order.push_back({timing.starts[w][i], static_cast<int32_t>(w),
                       static_cast<int32_t>(i)});
  std::sort(order.begin(), order.end(), [](const Turn &a, const Turn &b) {
    return std::tie(a.start, a.worker) < std::tie(b.start, b.worker);
  });
  return order;
}

std::vector<std::vector<Turn>> splitOrder(std::vector<Turn> order,
                                          const schedule::Schedule &schedule) {
  std::vector<std::vector<Turn>> sections;
  if (schedule.bodies.empty()) {
    sections.push_back(std::move(order));
    return sections;
  }
  sections.resize(3);
  for (const Turn &turn : order) {
    const schedule::Schedule::Body &body = schedule.bodies[turn.worker];
    sections[turn.index < body.begin ? 0
             : turn.index < body.end ? 1
                                     : 2]
        .push_back(turn);
  }
  return sections;
}

bool standsAmongActions(Operation &op, schedule::Updates updates) {
  if (isa<LoadOp, ZeroOp, CopyOp, ActionOp>(op))
    return true;
  if (updates != schedule::Updates::EachMicroBatch)
    return false;
  auto reduce = dyn_cast<AllReduceOp>(op);
  return isa<OptimizerStepOp>(op) ||
         (reduce && !isa<LossType>(reduce.getSummands().front().getType()));
}

SmallVector<Operation *, 2> updateOf(Value sum) {
  SmallVector<Operation *, 2> ops;
  for (Operation *user : sum.getUsers())
    if (isa<AllReduceOp, OptimizerStepOp>(user)) {
      ops.push_back(user);
      if (isa<AllReduceOp>(user))
        llvm::append_range(ops, updateOf(user->getResult(0)));
    }
  return ops;
}

} // namespace chimera
