//===- VerifyAllocated.cpp - Every value has its buffer -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Buffers.h"
#include "passes/Passes.h"

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
    }
    holder.resize(types.size());
    for (BlockArgument argument : worker.getBody().getArguments())
      write(worker, argument, argument.getType());
    forEachInstruction(worker, [&](Operation *op) {
      for (Value operand : op->getOperands())
        read(op, operand);
      for (Value result : op->getResults())
        if (!isa<SendingType>(result.getType()) && !isa<GroupOp>(op))
          write(op, result, result.getType());
    });
    return success(!failed);
  }

private:
  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
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
    holder[*buffer] = value;
  }

  void read(Operation *op, Value value) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (!buffer || *buffer < 0 || *buffer >= static_cast<int32_t>(types.size()))
      return;
    // Outside its group a transfer is the group's result.
    Value held = holder[*buffer];
    if (held != value && !isa<ArrivingType>(value.getType()))
      report(op, "expected its operand still in buffer ")
          << *buffer << ", which holds a later value";
  }

  WorkerOp worker;
  SmallVector<Type> types;
  /// The value that each buffer holds.
  SmallVector<Value> holder;
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
