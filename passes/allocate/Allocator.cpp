//===- Allocator.cpp - Buffers for the values of a worker -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/allocate/Allocator.h"

#include "dialect/LoopCarried.h"
#include "passes/Prefetch.h"
#include "passes/allocate/Buffers.h"
#include "passes/allocate/Heap.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <array>

using namespace mlir;

namespace chimera {

namespace {

/// The value that a transfer carries to this worker: the result of its wait.
Value arrivedValue(Value transfer) {
  for (OpOperand &use : transfer.getUses())
    if (auto wait = dyn_cast<WaitOp>(use.getOwner()))
      return wait.getValue();
  return Value();
}

int64_t bytesOf(Type type) { return cast<SizedType>(type).getBytes(); }

/// The bytes that are counted twice in the live bytes at `op`. While an input
/// gradient runs, its weight stash replaces its stash. So the worker needs the
/// maximum of the two sizes, not their sum.
int64_t stashOverlapAt(Operation *op) {
  auto first = dyn_cast<InputGradientOp>(op);
  return first ? std::min(bytesOf(first.getStash().getType()),
                          bytesOf(first.getWeightStash().getType()))
               : 0;
}

class Allocator {
public:
  explicit Allocator(WorkerOp worker)
      : worker(worker), sections(worker.getSections()),
        overlaps(sections.size() > 1) {}

  FailureOr<Allocated> run() {
    SmallVector<size_t> ends;
    bool fits = true;
    for (Block *section : sections) {
      for (BlockArgument argument : section->getArguments())
        fits &= countBytes(argument.getType());
      // Refuse a worker that has buffer ops: only an allocated worker may have
      // them.
      Operation *foreign =
          isa<BufferOp>(section->front()) ? &section->front() : nullptr;
      forEachInstruction(*section, [&](Operation *op) {
        auto placed = dyn_cast<PlacedOp>(op);
        if (!placed) {
          foreign = foreign ? foreign : op;
          return;
        }
        instructions.push_back(placed);
        for (Type type : op->getResultTypes())
          fits &= countBytes(type);
      });
      if (foreign)
        return foreign->emitOpError(
            "expected an instruction of a projected worker");
      ends.push_back(instructions.size());
    }
    position.reserve(instructions.size());
    for (auto [i, op] : llvm::enumerate(instructions))
      position[op] = static_cast<int32_t>(i);
    if (!fits)
      return worker.emitOpError("expected values of less than 2^62 bytes in "
                                "total");
    releases.resize(instructions.size());
    assignArguments();
    size_t i = 0;
    for (auto [section, end] : llvm::zip(sections, ends)) {
      enter(*section, static_cast<int32_t>(i));
      for (; i < end; ++i) {
        if (i + 16 < end) {
          prefetch(instructions[i + 16]);
          prefetchUsers(instructions[i + 8]);
        }
        if (failed(allocate(instructions[i], static_cast<int32_t>(i))))
          return failure();
        const int64_t replaced = stashOverlapAt(instructions[i]);
        if (live - replaced > peak) {
          peak = live - replaced;
          peakAt = static_cast<int32_t>(i);
        }
        mostStashes = std::max(mostStashes, liveStashes - replaced);
        for (int32_t buffer : releases[i])
          release(buffer, static_cast<int32_t>(i));
      }
    }
    makeBuffers();
    int64_t mostInUse = 0;
    for (const Heap *heap : arena)
      mostInUse += heap->maxInUse();
    return Allocated{offsetAfter(*arena.back()), mostStashes,
                     mostInUse + mostStashes};
  }

private:
  /// Adds the bytes of a value to `all`, which is an upper bound of the size of
  /// the arena. Returns false if the sum would be too large.
  bool countBytes(Type type) {
    constexpr int64_t kMost = int64_t{1} << 62;
    auto sized = dyn_cast<SizedType>(type);
    if (!sized)
      return true;
    if (sized.getBytes() > kMost - Heap::kAlignment - all)
      return false;
    all += llvm::alignTo(sized.getBytes(), Heap::kAlignment);
    return true;
  }

  struct Buffer {
    Type type;
    int64_t offset; ///< in its heap
    /// Index of the last instruction that needs the value in the buffer. -1 if
    /// the buffer has no value.
    int32_t end = -1;
    bool dedicated = false; ///< shares its bytes with no other buffer
    /// If the buffer is a piece of a gradient, the number of splits that made
    /// it, one after another. 0 for a whole value. Only a whole value returns
    /// its bytes to the heap.
    int32_t cuts = 0;
  };

  /// Assigns buffers to the arguments of all sections. The arguments of a
  /// single step are only weights and optimizer states. If steps overlap,
  /// values move to other buffers between sections (Opcode::Rename), so each
  /// loop-carried value has bytes that it shares with no other value. The
  /// prologue's arguments get the buffers of the step's newest weights and
  /// optimizer state.
  void assignArguments() {
    SmallVector<int32_t> arguments, loopCarried;
    for (Type type : sections.front()->getArgumentTypes())
      arguments.push_back(add(type, heapFor(type).append(bytesOf(type))));
    worker.setArguments(arguments);
    if (!overlaps)
      return;
    SmallVector<LoopCarried> replicas =
        *loopCarriedOf(sections[1]->getArgumentTypes());
    for (auto [r, replica] : llvm::enumerate(replicas))
      for (unsigned k = replica.first; k < replica.end(); ++k) {
        Type type = sections[1]->getArgument(k).getType();
        loopCarried.push_back(
            k == replica.newestWeights() ? arguments[2 * r]
            : k == replica.state()
                ? arguments[2 * r + 1]
                : add(type, heapFor(type).append(bytesOf(type))));
      }
    worker.setLoopCarried(loopCarried);
    for (auto [index, buffer] : llvm::enumerate(buffers)) {
      buffer.dedicated = true;
      pool.push_back(static_cast<int32_t>(index));
    }
  }

  /// Begins a section at instruction `now`. Only the arguments of the section
  /// are live.
  void enter(Block &section, int32_t now) {
    for (int32_t buffer : pool)
      buffers[buffer].end = -1;
    live = liveStashes = 0;
    for (BlockArgument argument : section.getArguments())
      assign(*bufferOf(worker, argument), argument, now);
  }

  /// True if steps overlap and `value` must not share its bytes. This is so for
  /// weights, optimizer states and all other loop-carried values.
  bool isDedicated(Value value, Type type) {
    return overlaps && (isa<WeightsType, OptimizerStateType>(type) ||
                        yieldedAs(value).has_value());
  }

  /// The index of the operand of the section's terminator that is `value`. If
  /// `value` is a transfer, the index of the operand that is the arriving
  /// value.
  std::optional<unsigned> yieldedAs(Value value) {
    if (isa<ArrivingType>(value.getType()))
      value = arrivedValue(groupResult(value));
    if (value)
      for (OpOperand &use : value.getUses())
        if (use.getOwner()->getParentOp() == worker &&
            isa<YieldOp>(use.getOwner()))
          return use.getOperandNumber();
    return std::nullopt;
  }

  /// Assigns a free dedicated buffer to `value`: if possible, the buffer in
  /// which the next section expects the value.
  int32_t assignDedicatedBuffer(Value value, Type type, int32_t made) {
    auto isFree = [&](int32_t buffer) {
      return buffers[buffer].end < 0 && buffers[buffer].type == type;
    };
    int32_t chosen = -1;
    if (std::optional<unsigned> index = yieldedAs(value)) {
      int32_t expected = (*buffersInNextSection(
          worker, *instructions[made]->getBlock()))[*index];
      if (isFree(expected))
        chosen = expected;
    }
    if (chosen < 0) {
      auto found = llvm::find_if(pool, isFree);
      chosen = found != pool.end() ? *found : -1;
    }
    if (chosen < 0) {
      chosen = add(type, heapFor(type).append(bytesOf(type)));
      buffers[chosen].dedicated = true;
      pool.push_back(chosen);
    }
    assign(chosen, value, made);
    return chosen;
  }

  /// The index of the last instruction that needs `value`. The instruction with
  /// index `made` computes `value`. If the worker yields `value`, returns the
  /// number of instructions, which is one more than the last index.
  int32_t lastUse(Value value, int32_t made) {
    int32_t end = made;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<YieldOp>(user) && user->getParentOp() == worker)
        return static_cast<int32_t>(instructions.size());
      if (!isa<YieldOp>(user))
        end = std::max(end, position[user]);
      // A post or start needs its operand until its own wait. So the wait is
      // the last use.
      if (isa<PostSendOp, AllReduceStartOp>(user))
        end = std::max(end, waitOf(user->getResult(0)));
      else if (isa<YieldOp>(user)) // a group yields its transfers
        end = std::max(
            end, lastUse(user->getParentOp()->getResult(use.getOperandNumber()),
                         made));
    }
    return end;
  }

  int32_t waitOf(Value transfer) { return lastUse(transfer, 0); }

  /// The index of the last instruction that needs `value`. If `value` is a
  /// transfer, the last instruction that needs the value that arrives.
  int32_t endOf(Value value, int32_t made) {
    int32_t end = lastUse(value, made);
    if (isa<ArrivingType>(value.getType()))
      if (Value arrived = arrivedValue(groupResult(value)))
        end = lastUse(arrived, end);
    return end;
  }

  /// If `transfer` is inside a group, the result of the group for it. Otherwise
  /// `transfer` itself.
  Value groupResult(Value transfer) {
    for (OpOperand &use : transfer.getUses())
      if (isa<YieldOp>(use.getOwner()))
        return use.getOwner()->getParentOp()->getResult(use.getOperandNumber());
    return transfer;
  }

  /// Assigns a buffer to `value`, which instruction `made` makes. The buffer is
  /// at the first gap that is large enough. Values of the same type and offset
  /// share a buffer number.
  int32_t assignBuffer(Value value, Type type, int32_t made) {
    if (isDedicated(value, type))
      return assignDedicatedBuffer(value, type, made);
    int32_t buffer = add(type, heapFor(type).allocate(bytesOf(type)));
    assign(buffer, value, made);
    return buffer;
  }

  /// The number of the buffer with this type and offset.
  int32_t add(Type type, int64_t offset) {
    auto [entry, isNew] =
        known.try_emplace({type.getAsOpaquePointer(), offset}, buffers.size());
    if (isNew)
      buffers.push_back({type, offset});
    return entry->second;
  }

  /// Adds the bytes of `type` to the live bytes, or subtracts them if `sign` is
  /// -1.
  void count(Type type, int64_t sign) {
    live += sign * bytesOf(type);
    if (isStash(type))
      liveStashes += sign * bytesOf(type);
  }

  /// Assigns `value` to `buffer` from instruction `made` on.
  void assign(int32_t buffer, Value value, int32_t made) {
    buffers[buffer].cuts = 0;
    count(buffers[buffer].type, 1);
    extend(buffer, endOf(value, made));
  }

  /// The heap for values of type `type`. Activations and gradients are sent to
  /// other workers. Most of them have one size. In a heap of their own they
  /// share bytes only with each other, so the two ends of a message can
  /// exchange buffers (runtime/interpreter/Blocks.h). In the same way, a load
  /// can exchange its buffer for memory that was filled ahead, so tokens and
  /// labels have heaps of their own, too. A stash takes no arena memory. Its
  /// offset is only an identifier.
  Heap &heapFor(Type type) {
    return isStash(type)                             ? stashes
           : isa<TokensType>(type)                   ? tokens
           : isa<LabelsType>(type)                   ? labels
           : isa<ActivationType, GradientType>(type) ? messages
                                                     : others;
  }

  /// The offset in the arena at which a heap ends.
  int64_t offsetAfter(const Heap &heap) const {
    int64_t end = 0;
    for (const Heap *each : arena) {
      end += each->size();
      if (each == &heap)
        break;
    }
    return end;
  }

  void extend(int32_t buffer, int32_t end) {
    buffers[buffer].end = end;
    if (end < static_cast<int32_t>(releases.size()))
      releases[end].push_back(buffer);
  }

  /// Frees the buffer, unless an in-place update has put a value into it that
  /// is still needed.
  void release(int32_t buffer, int32_t now) {
    if (buffers[buffer].end != now)
      return;
    Type type = buffers[buffer].type;
    buffers[buffer].end = -1;
    count(type, -1);
    if (!buffers[buffer].dedicated && buffers[buffer].cuts == 0)
      heapFor(type).release(buffers[buffer].offset, bytesOf(type));
  }

  /// Assigns the bytes of the operands of a split or join to its results, one
  /// after another from the offset of the first operand on. The bytes do not
  /// return to the heap.
  LogicalResult allocateSplitOrJoin(PlacedOp placed, int32_t now) {
    Operation *op = placed;
    int64_t offset = -1;
    int32_t cuts = isa<SplitOp>(op) ? 1 : -1;
    for (OpOperand &operand : op->getOpOperands()) {
      Buffer &buffer = buffers[*bufferOf(worker, operand.get())];
      if (buffer.end > now)
        return refuseUpdate(operand);
      if (offset < 0) {
        offset = buffer.offset;
        cuts += buffer.cuts;
      }
      count(buffer.type, -1);
      buffer.end = -1;
    }
    SmallVector<int32_t> numbers;
    for (Value result : op->getResults()) {
      int32_t number = add(result.getType(), offset);
      assign(number, result, now);
      buffers[number].cuts = cuts;
      numbers.push_back(number);
      offset += bytesOf(result.getType());
    }
    placed.setBuffers(ArrayRef<int32_t>(numbers));
    return success();
  }

  static LogicalResult refuseUpdate(OpOperand &operand) {
    return operand.getOwner()->emitOpError("expected no later use of operand ")
           << operand.getOperandNumber() << ", which it updates in place";
  }

  LogicalResult allocate(PlacedOp placed, int32_t now) {
    Operation *op = placed;
    if (isa<SplitOp, JoinOp>(op))
      return allocateSplitOrJoin(placed, now);
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
        numbers.push_back(assignBuffer(result, type, now));
        continue;
      }
      int32_t buffer = *bufferOf(worker, updated->get());
      int32_t until = isa<AllReduceStartOp>(op) ? waitOf(result) : now;
      bool needed = buffers[buffer].end > until;
      // If actions of other micro-batches still read the old weights, do not
      // overwrite them: the new weights get another buffer.
      if (needed && overlaps && isa<WeightsType>(type)) {
        numbers.push_back(assignDedicatedBuffer(result, type, now));
        continue;
      }
      if (needed)
        return refuseUpdate(*updated);
      extend(buffer, endOf(result, now));
      numbers.push_back(buffer);
    }
    if (!numbers.empty())
      placed.setBuffers(ArrayRef<int32_t>(numbers));
    return success();
  }

  void makeBuffers() {
    OpBuilder builder = OpBuilder::atBlockBegin(sections.front());
    auto offsetOf = [&](const Buffer &buffer) {
      const Heap &heap = heapFor(buffer.type);
      return offsetAfter(heap) - heap.size() + buffer.offset;
    };
    for (auto [index, buffer] : llvm::enumerate(buffers))
      builder.create<BufferOp>(
          worker.getLoc(), static_cast<uint32_t>(index), buffer.type,
          isStash(buffer.type) ? IntegerAttr()
                               : builder.getI64IntegerAttr(offsetOf(buffer)));
    worker.setArenaBytes(offsetAfter(*arena.back()));
    worker.setStashBytes(mostStashes);
    worker.setPeakBytes(peak);
    worker.setPeakInstruction(peakAt);
  }

  WorkerOp worker;
  SmallVector<Block *, 3> sections;
  bool overlaps; ///< steps overlap, so stashes etc. are loop-carried
  std::vector<PlacedOp> instructions;
  DenseMap<Operation *, int32_t> position;
  std::vector<Buffer> buffers;
  SmallVector<int32_t> pool; ///< the dedicated buffers
  /// For each instruction, the buffers that may become free after it.
  std::vector<SmallVector<int32_t, 2>> releases;
  /// Buffers by type and offset.
  DenseMap<std::pair<const void *, int64_t>, int32_t> known;
  Heap others, tokens, labels, messages, stashes; // see heapFor
  /// The heaps that follow one another in the arena.
  const std::array<const Heap *, 4> arena = {&others, &tokens, &labels,
                                             &messages};
  int64_t all = 0, live = 0, peak = 0;
  int64_t liveStashes = 0, mostStashes = 0; // the stashes among the live bytes
  int32_t peakAt = 0;
};

} // namespace

FailureOr<Allocated> allocate(WorkerOp worker) {
  return Allocator(worker).run();
}

} // namespace chimera
