//===- Allocate.cpp - A place for every value -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Buffers.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_ALLOCATEPASS
#include "passes/Passes.h.inc"

namespace {

/// Buffers begin at multiples of this, as vector instructions like them.
constexpr int64_t kAlignment = 64;

/// The value that a transfer carries to this worker: what its wait yields.
Value carried(Value transfer) {
  for (OpOperand &use : transfer.getUses())
    if (auto wait = dyn_cast<WaitOp>(use.getOwner()))
      return wait.getValue();
  return Value();
}

int64_t bytesOf(Type type) { return cast<SizedType>(type).getBytes(); }

/// A range of bytes that grows at its end, with gaps where values were.
class Room {
public:
  /// The offset of the first gap of `bytes`, or of the end.
  int64_t take(int64_t bytes) {
    bytes = llvm::alignTo(bytes, kAlignment);
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      auto [offset, room] = *gap;
      if (room < bytes)
        continue;
      gaps.erase(gap);
      if (room > bytes)
        gaps.emplace(offset + bytes, room - bytes);
      return offset;
    }
    end += bytes;
    return end - bytes;
  }

  void give(int64_t offset, int64_t bytes) {
    auto gap = gaps.emplace(offset, llvm::alignTo(bytes, kAlignment)).first;
    auto next = std::next(gap);
    if (next != gaps.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps.erase(next);
    }
    if (gap == gaps.begin())
      return;
    auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      gaps.erase(gap);
    }
  }

  int64_t size() const { return end; }

private:
  std::map<int64_t, int64_t> gaps; ///< offset to bytes, never adjacent
  int64_t end = 0;
};

class Allocator {
public:
  explicit Allocator(WorkerOp worker) : worker(worker) {}

  LogicalResult run() {
    for (Operation &op : worker.getBody().front().without_terminator())
      if (!isa<PlacedOp>(op))
        return op.emitOpError("expected an instruction of a projected worker");
    bool fits = true;
    for (BlockArgument argument : worker.getBody().getArguments())
      fits &= countBytes(argument.getType());
    forEachInstruction(worker, [&](Operation *op) {
      position[op] = static_cast<int32_t>(instructions.size());
      instructions.push_back(op);
      for (Type type : op->getResultTypes())
        fits &= countBytes(type);
    });
    if (!fits)
      return worker.emitOpError("expected values of less than 2^62 bytes in "
                                "all");
    releases.resize(instructions.size());
    SmallVector<int32_t> arguments;
    for (BlockArgument argument : worker.getBody().getArguments())
      arguments.push_back(open(argument, argument.getType(), 0));
    worker.setArguments(arguments);
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (failed(allocate(instructions[i], static_cast<int32_t>(i))))
        return failure();
      if (live > peak) {
        peak = live;
        peakAt = static_cast<int32_t>(i);
      }
      for (int32_t buffer : releases[i])
        close(buffer, static_cast<int32_t>(i));
    }
    declare();
    return success();
  }

private:
  /// Adds a value's bytes to those of all values, which bound the arena. False
  /// where they are too many to count.
  bool countBytes(Type type) {
    constexpr int64_t kMost = int64_t{1} << 62;
    auto sized = dyn_cast<SizedType>(type);
    if (!sized)
      return true;
    if (sized.getBytes() > kMost - kAlignment - all)
      return false;
    all += llvm::alignTo(sized.getBytes(), kAlignment);
    return true;
  }

  struct Buffer {
    Type type;
    int64_t offset;  ///< in the arena; that of a stash only tells it apart
    int32_t end = 0; ///< last instruction that needs what it holds
  };

  /// The last instruction that needs `value`, made at instruction `made`. One
  /// that the worker yields is needed to the end.
  int32_t lastUse(Value value, int32_t made) {
    int32_t end = made;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<YieldOp>(user) && user->getParentOp() == worker)
        return static_cast<int32_t>(instructions.size());
      if (!isa<YieldOp>(user))
        end = std::max(end, position[user]);
      // A post or start holds its operand until its own wait.
      if (isa<PostSendOp, AllReduceStartOp>(user))
        end = std::max(end, waitOf(user->getResult(0)));
      else if (isa<YieldOp>(user)) // a group hands its transfers out
        end = std::max(
            end, lastUse(user->getParentOp()->getResult(use.getOperandNumber()),
                         made));
    }
    return end;
  }

  int32_t waitOf(Value transfer) { return lastUse(transfer, 0); }

  /// The end of a value, or of what a transfer brings.
  int32_t endOf(Value value, int32_t made) {
    int32_t end = lastUse(value, made);
    if (isa<ArrivingType>(value.getType()))
      if (Value arrived = carried(groupResult(value)))
        end = lastUse(arrived, end);
    return end;
  }

  /// Outside a group, the transfer is known by the group's result.
  Value groupResult(Value transfer) {
    for (OpOperand &use : transfer.getUses())
      if (isa<YieldOp>(use.getOwner()))
        return use.getOwner()->getParentOp()->getResult(use.getOperandNumber());
    return transfer;
  }

  /// Takes room for a value made at instruction `made`: the first gap that
  /// it fits. Values of one type in one place share a buffer's number.
  int32_t open(Value value, Type type, int32_t made) {
    int64_t offset = roomFor(type).take(bytesOf(type));
    auto [entry, isNew] =
        known.try_emplace({type.getAsOpaquePointer(), offset}, buffers.size());
    if (isNew)
      buffers.push_back({type, offset});
    live += bytesOf(type);
    extend(entry->second, endOf(value, made));
    return entry->second;
  }

  Room &roomFor(Type type) { return isa<StashType>(type) ? stashes : arena; }

  void extend(int32_t buffer, int32_t end) {
    buffers[buffer].end = end;
    if (end < static_cast<int32_t>(releases.size()))
      releases[end].push_back(buffer);
  }

  /// Frees the buffer unless a value that took it over is still needed.
  void close(int32_t buffer, int32_t now) {
    if (buffers[buffer].end != now)
      return;
    Type type = buffers[buffer].type;
    buffers[buffer].end = -1;
    live -= bytesOf(type);
    roomFor(type).give(buffers[buffer].offset, bytesOf(type));
  }

  LogicalResult allocate(Operation *op, int32_t now) {
    SmallVector<int32_t> numbers;
    for (OpResult result : op->getResults()) {
      Type type = result.getType();
      if (isa<SendingType>(type) || isa<GroupOp>(op))
        continue;
      if (auto wait = dyn_cast<WaitOp>(op)) {
        numbers.push_back(*bufferOf(worker, wait.getTransfer()));
        continue;
      }
      if (auto arriving = dyn_cast<ArrivingType>(type))
        type = arriving.getValue();
      OpOperand *updated = updatedOperand(result);
      if (!updated) {
        numbers.push_back(open(result, type, now));
        continue;
      }
      int32_t buffer = *bufferOf(worker, updated->get());
      int32_t until = isa<AllReduceStartOp>(op) ? waitOf(result) : now;
      if (buffers[buffer].end > until)
        return op->emitOpError("expected operand ")
               << updated->getOperandNumber()
               << ", which it updates in place, to be needed no further";
      extend(buffer, endOf(result, now));
      numbers.push_back(buffer);
    }
    if (!numbers.empty())
      cast<PlacedOp>(op).setBuffers(ArrayRef<int32_t>(numbers));
    return success();
  }

  void declare() {
    OpBuilder builder = OpBuilder::atBlockBegin(&worker.getBody().front());
    for (auto [index, buffer] : llvm::enumerate(buffers))
      builder.create<BufferOp>(worker.getLoc(), static_cast<uint32_t>(index),
                               buffer.type,
                               isa<StashType>(buffer.type)
                                   ? IntegerAttr()
                                   : builder.getI64IntegerAttr(buffer.offset));
    worker.setArenaBytes(arena.size());
    worker.setPeakBytes(peak);
    worker.setPeakInstruction(peakAt);
  }

  WorkerOp worker;
  std::vector<Operation *> instructions;
  DenseMap<Operation *, int32_t> position;
  std::vector<Buffer> buffers;
  /// Buffers that may be free behind an instruction.
  std::vector<SmallVector<int32_t, 2>> releases;
  /// Buffers by type and offset.
  DenseMap<std::pair<const void *, int64_t>, int32_t> known;
  Room arena, stashes;
  int64_t all = 0, live = 0, peak = 0;
  int32_t peakAt = 0;
};

struct Allocate : impl::AllocatePassBase<Allocate> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>()) {
      if (pipeline.getBody().empty() ||
          pipeline.getBody().front().getOps<WorkerOp>().empty()) {
        pipeline.emitOpError("expected workers: run chimera-project first");
        return signalPassFailure();
      }
      for (auto worker : pipeline.getBody().front().getOps<WorkerOp>())
        if (failed(Allocator(worker).run()))
          return signalPassFailure();
    }
  }
};

} // namespace
} // namespace chimera
