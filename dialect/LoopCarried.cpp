//===- LoopCarried.cpp - Loop-carried values of sections ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/LoopCarried.h"

using namespace mlir;

namespace chimera {

std::optional<SmallVector<LoopCarried>> loopCarriedOf(TypeRange types) {
  SmallVector<LoopCarried> replicas;
  unsigned at = 0;
  unsigned end = types.size();
  while (at < end) {
    LoopCarried replica{at};
    while (at < end && isa<WeightsType>(types[at]))
      ++at, ++replica.versions;
    if (replica.versions == 0 || at == end ||
        !isa<OptimizerStateType>(types[at]))
      return std::nullopt;
    ++at;
    while (at < end && isa<StashType>(types[at]))
      ++at, ++replica.stashes;
    while (at < end && isa<ActivationType>(types[at]))
      ++at, ++replica.activations;
    replicas.push_back(replica);
  }
  return replicas;
}

/// True if the loop-carried values are only the weights and the optimizer state
/// of each replica.
static bool isPlain(TypeRange types) {
  std::optional<SmallVector<LoopCarried>> replicas = loopCarriedOf(types);
  return replicas && llvm::all_of(*replicas, [](const LoopCarried &replica) {
           return replica.end() - replica.first == 2;
         });
}

LogicalResult verifySection(Operation *op, Block &block, SectionKind section) {
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError("expected a chimera.yield at its end");
  TypeRange taken = block.getArgumentTypes();
  TypeRange yielded = block.back().getOperandTypes();
  constexpr const char *kPairs = "pairs of weights and optimizer state";
  constexpr const char *kAny =
      "each replica's weights, optimizer state, stashes and activations";
  bool plain = section == SectionKind::Prologue;
  if (plain ? !isPlain(taken) : !loopCarriedOf(taken))
    return op->emitOpError("expected ")
           << (plain ? kPairs : kAny) << " as arguments, got " << taken;
  if (section == SectionKind::Step && taken != yielded)
    return op->emitOpError("expected the yielded types to be the arguments'");
  plain = section == SectionKind::Epilogue;
  if (plain ? !isPlain(yielded) : !loopCarriedOf(yielded))
    return op->emitOpError("expected it to yield ")
           << (plain ? kPairs : kAny) << ", got " << yielded;
  return success();
}

LogicalResult verifyLoopCarried(Operation *op, ArrayRef<Block *> sections) {
  if (sections.size() == 1) {
    if (isPlain(sections[0]->getArgumentTypes()))
      return success();
    return op->emitOpError("expected pairs of weights and optimizer state as "
                           "arguments without a prologue and an epilogue, got ")
           << sections[0]->getArgumentTypes();
  }
  const char *names[] = {"prologue", "step", "epilogue"};
  for (size_t i = 0; i < sections.size(); ++i) {
    size_t next = (i + 1) % sections.size();
    TypeRange yielded = sections[i]->back().getOperandTypes();
    TypeRange taken = sections[next]->getArgumentTypes();
    if (yielded != taken)
      return op->emitOpError("expected the ")
             << names[next] << " to take the types that the " << names[i]
             << " yields, " << yielded << ", got " << taken;
  }
  return success();
}

} // namespace chimera
