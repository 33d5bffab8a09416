//===- Reductions.cpp - Contributions to all-reduces ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/communicate/Reductions.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <set>

using namespace mlir;

namespace chimera {

namespace {

/// The action that makes `contribution`. If `contribution` is a piece of a
/// gradient, the action that makes the gradient. Null if no action makes it.
ActionOp makerOf(Value contribution) {
  if (auto split = contribution.getDefiningOp<SplitOp>())
    contribution = split.getGradient();
  return contribution.getDefiningOp<ActionOp>();
}

/// The actions that add to `contribution`: the one that makes it and, if it is
/// a loss, the backwards that take it (Stage::backward).
SmallVector<ActionOp, 2> contributorsOf(Value contribution) {
  SmallVector<ActionOp, 2> actions;
  if (ActionOp maker = makerOf(contribution))
    actions.push_back(maker);
  if (isa<LossType>(contribution.getType()))
    for (Operation *user : contribution.getUsers())
      if (isa<BackwardOp, InputGradientOp>(user))
        actions.push_back(cast<ActionOp>(user));
  return actions;
}

/// The order of the actions that add to contributions. Use it to find the last
/// action of a worker that adds to a contribution of an all-reduce.
///
/// These actions are near the end of the block. So the constructor walks from
/// the end of the block, and stops when it has found the last action of each
/// worker in each all-reduce. Operation::isBeforeInBlock would be slower: it
/// numbers all ops of the block.
class ContributionOrder {
public:
  explicit ContributionOrder(ArrayRef<AllReduceOp> reduces) {
    DenseMap<Operation *, SmallVector<unsigned, 2>> reducesOf;
    std::set<std::pair<unsigned, std::optional<uint32_t>>> missing;
    for (unsigned index = 0; index < reduces.size(); ++index)
      for (Value contribution : AllReduceOp(reduces[index]).getContributions())
        for (ActionOp action : contributorsOf(contribution)) {
          reducesOf[action].push_back(index);
          missing.insert({index, action.getWorker()});
        }
    Operation *op = reduces.empty() ? nullptr : reduces.front();
    for (int64_t next = INT64_MAX; op && !missing.empty();
         op = op->getPrevNode())
      if (auto found = reducesOf.find(op); found != reducesOf.end()) {
        order[op] = next--;
        for (unsigned index : found->second)
          missing.erase({index, cast<ActionOp>(op).getWorker()});
      }
  }

  bool isBefore(Operation *a, Operation *b) const {
    return order.lookup(a) < order.lookup(b);
  }
  /// The later of two actions. `a` may be null.
  Operation *later(Operation *a, Operation *b) const {
    return !a || isBefore(a, b) ? b : a;
  }

private:
  /// A number for each action that the walk has found, in order. All other
  /// actions are before these.
  DenseMap<Operation *, int64_t> order;
};

FailureOr<Reduction> reductionOf(AllReduceOp reduce,
                                 const ContributionOrder &order) {
  if (reduce.sumsLosses() && !reduce->use_empty())
    return reduce.emitOpError("expected no use of the sum of the losses");
  Reduction result{reduce, {}, {}, {}, nullptr};
  DenseMap<uint32_t, size_t> partOf; // index of each worker's part
  for (auto [index, contribution] :
       llvm::enumerate(reduce.getContributions())) {
    ActionOp action = makerOf(contribution);
    auto norm = contribution.getDefiningOp<SquaredNormOp>();
    std::optional<uint32_t> worker = action ? action.getWorker()
                                     : norm ? norm.getWorker()
                                            : std::nullopt;
    if (!worker)
      return reduce.emitOpError(
          "expected contributions made by actions that name their worker: run "
          "chimera-schedule first");
    result.workers.push_back(*worker);
    // A forward that covers several micro-batches has a loss for each of them.
    result.keys.push_back(
        norm ? norm.getPipeline()
        : reduce.sumsLosses()
            ? action.getMicroBatch() +
                  cast<OpResult>(contribution).getResultNumber()
            : action.getPipeline());
    auto [known, isNew] = partOf.try_emplace(*worker, result.parts.size());
    if (isNew)
      result.parts.push_back(ReductionPart{*worker, {}, nullptr, {}});
    ReductionPart &part = result.parts[known->second];
    part.operands.push_back(index);
    for (ActionOp each : contributorsOf(contribution)) {
      part.last = order.later(part.last, each);
      result.last = order.later(result.last, each);
    }
  }
  return result;
}

} // namespace

FailureOr<std::vector<Reduction>> reductionsOf(ArrayRef<AllReduceOp> reduces,
                                               bool needsOrder) {
  ContributionOrder order(needsOrder ? reduces : ArrayRef<AllReduceOp>());
  std::vector<Reduction> reductions;
  for (AllReduceOp reduce : reduces) {
    FailureOr<Reduction> reduction = reductionOf(reduce, order);
    if (failed(reduction))
      return failure();
    reductions.push_back(std::move(*reduction));
  }
  llvm::stable_sort(reductions, [&](const Reduction &a, const Reduction &b) {
    if (a.last == b.last)
      return AllReduceOp(a.op).sumsLosses() && !AllReduceOp(b.op).sumsLosses();
    return order.isBefore(a.last, b.last);
  });
  return reductions;
}

} // namespace chimera
