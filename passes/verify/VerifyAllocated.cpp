//===- VerifyAllocated.cpp - Every value has its buffer -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/allocate/Buffers.h"
#include "passes/schedule/Sections.h"
#include "passes/verify/Channels.h"
#include "passes/verify/Verifier.h"

#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYALLOCATEDPASS
#include "passes/Passes.h.inc"

namespace {

class WorkerVerifier {
public:
  explicit WorkerVerifier(WorkerOp worker) : worker(worker) {}

  LogicalResult run() {
    SmallVector<Block *, 3> sections = worker.getSections();
    for (auto buffer : sections.front()->getOps<BufferOp>()) {
      if (buffer.getIndex() != types.size())
        report(buffer, "expected buffers in the order of their index, got ")
            << buffer.getIndex() << " after " << types.size() << " others";
      types.push_back(buffer.getType());
      offsets.push_back(buffer.getOffset().value_or(-1));
    }
    for (Block *section : sections) {
      inUse.clear();
      values.assign(types.size(), Value());
      for (BlockArgument argument : section->getArguments())
        write(worker, argument, argument.getType());
      stashes = 0;
      for (BlockArgument argument : section->getArguments())
        if (isStash(argument.getType()))
          stashes += cast<SizedType>(argument.getType()).getBytes();
      forEachInstruction(*section, [&](Operation *op) {
        failed |= mlir::failed(verifyAwaited(*op));
        countStashes(op);
        for (Value operand : op->getOperands())
          readOrAwait(op, operand);
        if (isa<SplitOp>(op))
          verifyPieces(op, op->getOperands(), op->getResults());
        else if (isa<JoinOp>(op))
          verifyPieces(op, op->getResults(), op->getOperands());
        for (Value result : op->getResults())
          if (!isa<SendingType>(result.getType()) && !isa<GroupOp>(op))
            write(op, result, result.getType());
      });
      verifyYield(*section);
    }
    if (std::optional<uint64_t> stated = worker.getStashBytes();
        stated && *stated != mostStashes)
      report(worker, "expected ")
          << mostStashes << " bytes of stashes at a time, got " << *stated;
    return success(!failed);
  }

private:
  /// Counts the bytes of live stashes. While an input gradient runs, its weight
  /// stash replaces its stash. So during this time only the larger of the two
  /// counts.
  void countStashes(Operation *op) {
    auto bytesOf = [](Value value) -> uint64_t {
      return isStash(value.getType())
                 ? cast<SizedType>(value.getType()).getBytes()
                 : 0;
    };
    uint64_t taken = 0, made = 0, kept = 0;
    for (Value operand : op->getOperands())
      taken += bytesOf(operand);
    for (Value result : op->getResults()) {
      made += bytesOf(result);
      kept += result.use_empty() ? 0 : bytesOf(result);
    }
    mostStashes =
        std::max(mostStashes, stashes + std::max(made, taken) - taken);
    stashes += kept - taken;
  }

  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
  }

  /// Checks that the section yields each value in the buffer where the next
  /// section expects it. With a flush, the next section is the next step, so
  /// each state must be in the buffer in which this step found it. If steps
  /// overlap, buffers may be renamed between sections.
  void verifyYield(Block &section) {
    Operation *yield = section.getTerminator();
    std::optional<ArrayRef<int32_t>> targets =
        buffersInNextSection(worker, section);
    llvm::DenseSet<int32_t> yielded;
    for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
      read(yield, value);
      std::optional<int32_t> buffer = bufferOf(worker, value);
      if (!targets || !isKnown(buffer) || !isKnown((*targets)[index]))
        continue;
      int32_t target = (*targets)[index];
      if (!yielded.insert(*buffer).second)
        report(yield, "expected value ")
            << index << " in a buffer of its own, got buffer " << *buffer;
      else if (*buffer != target && !(mayMove(*buffer) && mayMove(target) &&
                                      types[*buffer] == types[target]))
        report(yield, "expected value ") << index << " in buffer " << target
                                         << ", where the next section takes it";
    }
  }

  /// Checks that the pieces are adjacent and have the same bytes as the whole.
  void verifyPieces(Operation *op, ValueRange whole, ValueRange pieces) {
    std::optional<int32_t> first = bufferOf(worker, whole.front());
    if (!isKnown(first))
      return;
    int64_t offset = offsets[*first];
    for (auto [index, piece] : llvm::enumerate(pieces)) {
      std::optional<int32_t> buffer = bufferOf(worker, piece);
      if (!isKnown(buffer))
        return;
      if (offsets[*buffer] != offset)
        report(op, "expected piece ")
            << index << " at " << offset << ", in the memory of the whole, got "
            << offsets[*buffer];
      offset += bytesOf(*buffer);
    }
  }

  bool isKnown(std::optional<int32_t> buffer) const {
    return buffer && *buffer >= 0 &&
           *buffer < static_cast<int32_t>(types.size());
  }

  /// True if the value in `buffer` may exchange places with another value
  /// between sections. It may if no other buffer shares bytes with `buffer`.
  bool mayMove(int32_t buffer) {
    if (worker.getPrologue().empty())
      return false;
    if (offsets[buffer] < 0 || bytesOf(buffer) == 0)
      return true;
    int64_t begin = offsets[buffer], end = begin + bytesOf(buffer);
    for (size_t other = 0; other < types.size(); ++other)
      if (static_cast<int32_t>(other) != buffer && offsets[other] >= 0 &&
          bytesOf(other) > 0 && offsets[other] < end &&
          begin < offsets[other] + bytesOf(other))
        return false;
    return true;
  }

  int64_t bytesOf(size_t buffer) const {
    return cast<SizedType>(types[buffer]).getBytes();
  }

  void write(Operation *op, Value value, Type type) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (!isKnown(buffer))
      return void(report(op, "expected a buffer for each result"));
    if (auto arriving = dyn_cast<ArrivingType>(type))
      type = arriving.getValue();
    if (types[*buffer] != type)
      report(op, "expected a buffer of ")
          << type << ", got buffer " << *buffer << " of " << types[*buffer];
    overwrite(*buffer);
    values[*buffer] = value;
  }

  /// Drops the values of all buffers that share bytes with `buffer`.
  void overwrite(int32_t buffer) {
    // A buffer without bytes shares no bytes with another.
    if (offsets[buffer] < 0 || bytesOf(buffer) == 0)
      return;
    int64_t begin = offsets[buffer];
    int64_t end = begin + bytesOf(buffer);
    // Ranges in use do not overlap each other. So at most one range that begins
    // earlier overlaps this range.
    auto at = inUse.lower_bound(begin);
    if (at != inUse.begin() && std::prev(at)->second.first > begin)
      --at;
    while (at != inUse.end() && at->first < end) {
      values[at->second.second] = Value();
      at = inUse.erase(at);
    }
    inUse[begin] = {end, buffer};
  }

  /// Checks that the operand `value` of `op` has not been overwritten. If `op`
  /// is a wait, also checks the operands of the op that began the transfer,
  /// because the transfer needs them until the wait.
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
    if (!isKnown(buffer))
      return;
    if (values[*buffer] != value)
      report(op, "expected its operand in buffer ")
          << *buffer << ", whose bytes a later value has overwritten";
  }

  WorkerOp worker;
  /// Bytes of the live stashes now, and the largest number so far.
  uint64_t stashes = 0, mostStashes = 0;
  SmallVector<Type> types;
  /// The offset of each buffer, -1 for a stash.
  SmallVector<int64_t> offsets;
  /// The value in each buffer.
  SmallVector<Value> values;
  /// The ranges of bytes that hold a value: begin to (end, buffer).
  std::map<int64_t, std::pair<int64_t, int32_t>> inUse;
  bool failed = false;
};

LogicalResult verifyAllocated(PipelineOp pipeline) {
  SmallVector<WorkerOp> workers = workersOf(pipeline);
  if (workers.empty())
    return pipeline.emitOpError("expected workers: run chimera-project first");
  LogicalResult result = success();
  for (WorkerOp worker : workers)
    if (mlir::failed(WorkerVerifier(worker).run()))
      result = failure();
  if (mlir::failed(verifySections(pipeline)))
    result = failure();
  return result;
}

struct VerifyAllocated
    : Verifier<impl::VerifyAllocatedPassBase<VerifyAllocated>,
               verifyAllocated> {};

} // namespace
} // namespace chimera
