//===- VerifyAllocated.cpp - Every value has its buffer -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Buffers.h"
#include "passes/Passes.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYALLOCATEDPASS
#include "passes/Passes.h.inc"

namespace {

class Verifier {
public:
  explicit Verifier(WorkerOp worker) : worker(worker) {}

  LogicalResult run() {
    for (auto buffer : worker.getBody().front().getOps<BufferOp>()) {
      if (buffer.getIndex() != types.size())
        report(buffer, "expected buffers in the order of their index, got ")
            << buffer.getIndex() << " after " << types.size() << " others";
      types.push_back(buffer.getType());
      offsets.push_back(buffer.getOffset().value_or(-1));
    }
    holder.resize(types.size());
    for (BlockArgument argument : worker.getBody().getArguments())
      write(worker, argument, argument.getType());
    forEachInstruction(worker, [&](Operation *op) {
      for (Value operand : op->getOperands())
        readOrAwait(op, operand);
      for (Value result : op->getResults())
        if (!isa<SendingType>(result.getType()) && !isa<GroupOp>(op))
          write(op, result, result.getType());
    });
    verifyYield();
    return success(!failed);
  }

private:
  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
  }

  /// The next step finds the states where this one found them.
  void verifyYield() {
    Operation *yield = worker.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
      std::optional<int32_t> home =
          bufferOf(worker, worker.getBody().getArgument(index));
      if (home && bufferOf(worker, value) != home)
        report(yield, "expected value ")
            << index << " in buffer " << *home << " of its argument";
      read(yield, value);
    }
  }

  void write(Operation *op, Value value, Type type) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (!buffer || *buffer < 0 || *buffer >= static_cast<int32_t>(types.size()))
      return void(report(op, "expected a buffer for each result"));
    if (auto arriving = dyn_cast<ArrivingType>(type))
      type = arriving.getValue();
    if (types[*buffer] != type)
      report(op, "expected a buffer of ")
          << type << ", got buffer " << *buffer << " of " << types[*buffer];
    overwrite(*buffer);
    holder[*buffer] = value;
  }

  /// Drops what buffers that share bytes with `buffer` hold.
  void overwrite(int32_t buffer) {
    if (offsets[buffer] < 0)
      return;
    int64_t begin = offsets[buffer];
    int64_t end = begin + cast<SizedType>(types[buffer]).getBytes();
    // Ranges in use are disjoint: one may begin before this one.
    auto at = inUse.lower_bound(begin);
    if (at != inUse.begin() && std::prev(at)->second.first > begin)
      --at;
    while (at != inUse.end() && at->first < end) {
      holder[at->second.second] = Value();
      at = inUse.erase(at);
    }
    inUse[begin] = {end, buffer};
  }

  /// A wait needs what its transfer was begun with until now.
  void readOrAwait(Operation *op, Value value) {
    if (auto group = value.getDefiningOp<GroupOp>())
      value = group.getPosts().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    read(op, value);
    if (!isa<WaitOp>(op))
      return;
    std::optional<int32_t> result = bufferOf(worker, value);
    for (Value operand : value.getDefiningOp()->getOperands())
      if (!result || bufferOf(worker, operand) != result)
        read(op, operand);
  }

  void read(Operation *op, Value value) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (!buffer || *buffer < 0 || *buffer >= static_cast<int32_t>(types.size()))
      return;
    if (holder[*buffer] != value)
      report(op, "expected its operand still in buffer ")
          << *buffer << ", whose place holds a later value";
  }

  WorkerOp worker;
  SmallVector<Type> types;
  /// Where each buffer begins, -1 for a stash.
  SmallVector<int64_t> offsets;
  /// The value that each buffer holds.
  SmallVector<Value> holder;
  /// Bytes that hold a value: begin to end and buffer.
  std::map<int64_t, std::pair<int64_t, int32_t>> inUse;
  bool failed = false;
};

struct VerifyAllocated : impl::VerifyAllocatedPassBase<VerifyAllocated> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      pipeline.walk([&](WorkerOp worker) {
        if (mlir::failed(Verifier(worker).run()))
          signalPassFailure();
      });
  }
};

} // namespace
} // namespace chimera
