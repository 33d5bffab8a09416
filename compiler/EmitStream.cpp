//===- EmitStream.cpp - Instruction stream of one worker ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/EmitStream.h"

#include "dialect/LoopCarried.h"
#include "passes/allocate/Buffers.h"
#include "passes/describe/DescriptionReader.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace chimera {

using program::Opcode;
using program::ValueKind;

ValueKind kindOf(Type type) {
  if (auto arriving = dyn_cast<ArrivingType>(type))
    type = arriving.getValue();
  return llvm::TypeSwitch<Type, ValueKind>(type)
      .Case([](TokensType) { return ValueKind::Tokens; })
      .Case([](LabelsType) { return ValueKind::Labels; })
      .Case([](ActivationType) { return ValueKind::Activation; })
      .Case([](GradientType) { return ValueKind::Gradient; })
      .Case([](StashType) { return ValueKind::Stash; })
      .Case([](WeightStashType) { return ValueKind::WeightStash; })
      .Case([](LossType) { return ValueKind::Loss; })
      .Case([](WeightsType) { return ValueKind::Weights; })
      .Case([](WeightGradientType) { return ValueKind::WeightGradient; })
      .Case([](SquaredNormType) { return ValueKind::SquaredNorm; })
      .Default([](Type) { return ValueKind::OptimizerState; });
}

namespace {

/// The source locations of one stream, numbered in the order of their first
/// use.
class SourceLocations {
public:
  uint32_t find(LocationAttr location) {
    // Remove the names that passes put around a location: without them there
    // are few different locations. Most ops have the location of the previous
    // op, so look there first.
    while (auto named = dyn_cast<NameLoc>(location))
      location = named.getChildLoc();
    if (location == last)
      return lastIndex;
    last = location;
    lastIndex = kNoLocation;
    if (auto source = location.findInstanceOf<FileLineColLoc>()) {
      auto [entry, isNew] = known.try_emplace(source, list.size());
      if (isNew)
        list.push_back(source);
      lastIndex = entry->second;
    }
    return lastIndex;
  }

  SmallVector<FileLineColLoc> take() { return std::move(list); }

private:
  LocationAttr last;
  uint32_t lastIndex = kNoLocation;
  SmallVector<FileLineColLoc> list;
  DenseMap<Attribute, uint32_t> known;
};

/// Finds which of several versions of a stage's weights an op reads.
class Versions {
public:
  /// Begins a section. Call it only if steps overlap.
  void enter(Block &section) {
    versions.clear();
    newest.clear();
    SmallVector<LoopCarried> replicas =
        *loopCarriedOf(section.getArgumentTypes());
    for (const LoopCarried &replica : replicas) {
      for (unsigned k = 0; k < replica.versions; ++k)
        versions[section.getArgument(replica.first + k)] = {
            static_cast<uint32_t>(newest.size()), k};
      newest.push_back(replica.versions - 1);
    }
  }

  /// The number of versions that are newer than the one that `op` reads, at the
  /// time when `op` runs. Must be called for each op, in the order of the
  /// stream.
  uint32_t newerVersions(Operation *op) {
    if (newest.empty())
      return 0;
    auto weights = llvm::find_if(op->getOperands(), [](Value operand) {
      return isa<WeightsType>(operand.getType());
    });
    if (weights == op->operand_end())
      return 0;
    Version read = versions.lookup(*weights);
    uint32_t newer = newest[read.replica] - read.number;
    if (isa<CopyOp>(op))
      versions[op->getResult(0)] = read;
    else if (isa<OptimizerStepOp>(op))
      versions[op->getResult(0)] = {read.replica, ++newest[read.replica]};
    return newer;
  }

private:
  struct Version {
    uint32_t replica = 0, number = 0;
  };
  DenseMap<Value, Version> versions;
  /// The number of the newest version of each replica. Empty unless steps
  /// overlap.
  SmallVector<uint32_t> newest;
};

class StreamEmitter {
public:
  StreamEmitter(WorkerOp worker, const Layout &layout, uint32_t microBatches)
      : worker(worker), layout(layout), microBatches(microBatches),
        out(std::make_unique<program::WorkerT>()) {}

  FailureOr<Stream> run() {
    bool overlaps = !worker.getPrologue().empty();
    if (!worker.getArguments() || (overlaps && !worker.getLoopCarried()) ||
        !worker.getArenaBytes()) {
      return worker.emitOpError("expected an allocated worker: run "
                                "chimera-allocate first");
    }
    // All buffer ops are at the beginning of the long block. The loop stops at
    // the first other op.
    SmallVector<Block *, 3> sections = worker.getSections();
    for (Operation &op : *sections.front()) {
      auto buffer = dyn_cast<BufferOp>(op);
      if (!buffer)
        break;
      out->buffers.emplace_back(kindOf(buffer.getType()),
                                buffer.getOffset().value_or(0),
                                cast<SizedType>(buffer.getType()).getBytes());
    }
    ArrayRef<int32_t> holds = worker.getHolds();
    for (size_t i = 0; i < holds.size(); i += 2)
      checkReplica(worker, holds[i], holds[i + 1]);
    for (size_t i = 0; i < holds.size(); i += 2)
      out->states.emplace_back(holds[i], holds[i + 1],
                               (*worker.getArguments())[i],
                               (*worker.getArguments())[i + 1]);
    out->peak_instruction = worker.getPeakInstruction().value_or(0);
    for (Block *section : sections) {
      if (section == &worker.getBody().front())
        out->body_begin = static_cast<uint32_t>(out->instructions.size());
      if (sections.size() > 1)
        versions.enter(*section);
      forEachInstruction(*section, [&](Operation *op) { emit(op); });
      emitRename(*section);
      if (section == &worker.getBody().front())
        out->body_end = static_cast<uint32_t>(out->instructions.size());
    }
    out->arena_bytes = *worker.getArenaBytes();
    out->peak_bytes = worker.getPeakBytes().value_or(0);
    if (std::optional<uint64_t> cap =
            capOf(worker->getParentOfType<PipelineOp>()))
      out->memory_cap = *cap;
    if (hasFailed)
      return failure();
    return Stream{std::move(out), locations.take(), std::move(starts)};
  }

private:
  /// The fields of an instruction that depend on the op.
  struct Fields {
    Opcode opcode;
    ValueKind kind = ValueKind::Tokens;
    uint32_t pipeline = 0, stage = 0;
    uint32_t microBatch = 0, microBatches = 0;
    uint32_t target = 0;
    uint32_t part = 0, parts = 1;
  };

  template <typename Op> static Fields ofReplica(Op op, Opcode opcode) {
    return {opcode, ValueKind::Tokens, op.getPipeline(), op.getStage()};
  }

  static Fields ofLoad(LoadOp op) {
    return {Opcode::Load,  kindOf(op.getType()), op.getPipeline(),
            op.getStage(), op.getMicroBatch(),   op.getCount()};
  }

  template <typename Op>
  static Fields ofAction(Op op, Opcode opcode, Type type) {
    return {opcode,        kindOf(type),       op.getPipeline(),
            op.getStage(), op.getMicroBatch(), op.getCount(),
            /*target=*/0,  op.getPart(),       op.getParts()};
  }

  template <typename Op> static Fields ofPost(Op op, Opcode opcode, Type type) {
    Fields fields = ofAction(op, opcode, type);
    fields.target = op.getPeer();
    return fields;
  }

  Fields fieldsOf(Operation *op) {
    using Switch = llvm::TypeSwitch<Operation *, Fields>;
    return Switch(op)
        .Case([](LoadOp o) { return ofLoad(o); })
        .Case([](ForwardOp o) {
          return ofAction(o, Opcode::Forward, o.getOutputs().front().getType());
        })
        .Case([](RecomputeOp o) {
          return ofAction(o, Opcode::Recompute, o.getStash().getType());
        })
        .Case([](BackwardOp o) {
          return ofAction(o, Opcode::Backward, o.getNewSum().getType());
        })
        .Case([](InputGradientOp o) {
          return ofAction(o, Opcode::InputGradient,
                          o.getWeightStash().getType());
        })
        .Case([](WeightGradientOp o) {
          return ofAction(o, Opcode::WeightGradient, o.getNewSum().getType());
        })
        .Case([](SquaredNormOp o) {
          Fields fields = ofReplica(o, Opcode::SquaredNorm);
          fields.kind = ValueKind::SquaredNorm;
          return fields;
        })
        .Case([&](OptimizerStepOp o) {
          Fields fields = ofReplica(o, Opcode::OptimizerStep);
          fields.microBatch = o.getMicroBatch().value_or(0);
          fields.microBatches = o.getMicroBatch() ? 1 : microBatches;
          return fields;
        })
        .Case([](CopyOp o) {
          Fields fields = ofReplica(o, Opcode::Copy);
          fields.kind = ValueKind::Weights;
          return fields;
        })
        .Case([](OverwriteOp o) {
          Fields fields = ofReplica(o, Opcode::Copy);
          fields.kind = ValueKind::WeightGradient;
          return fields;
        })
        .Case([](PostSendOp o) {
          return ofPost(o, Opcode::PostSend, o.getValue().getType());
        })
        .Case([](PostReceiveOp o) {
          return ofPost(o, Opcode::PostRecv, o.getTransfer().getType());
        })
        .Case([](GroupOp o) {
          auto posts = o.getPosts().front().getOperations().size() - 1;
          return Fields{.opcode = Opcode::Group,
                        .target = static_cast<uint32_t>(posts)};
        })
        .Case([&](WaitOp o) {
          return Fields{.opcode = Opcode::Wait,
                        .target = transfers.lookup(o.getTransfer())};
        })
        .Case([&](AllReduceStartOp o) {
          starts.push_back({out->instructions.size(), o});
          return Fields{.opcode = Opcode::AllReduceStart,
                        .kind = kindOf(o.getTransfer().getType()),
                        .stage = o.getStage(),
                        .microBatch = o.getBucket(),
                        .microBatches =
                            o.getBuckets() > 1 ? o.getBuckets() : 0};
        })
        .Case<SplitOp, JoinOp>([](auto o) {
          Fields fields =
              ofReplica(o, isa<SplitOp>(o) ? Opcode::Split : Opcode::Join);
          fields.kind = ValueKind::WeightGradient;
          return fields;
        })
        .Default([&](Operation *o) {
          o->emitOpError("expected an instruction");
          hasFailed = true;
          return Fields{};
        });
  }

  /// Fails if `pipeline` or `stage` does not exist. The file has 16 bits for
  /// each of them, so a larger number would be truncated and name another
  /// replica.
  void checkReplica(Operation *op, uint32_t pipeline, uint32_t stage) {
    if (pipeline < layout.directions.size() && stage < layout.stages.size())
      return;
    op->emitOpError("expected a pipeline below ")
        << layout.directions.size() << " and a stage below "
        << layout.stages.size() << ", got " << pipeline << " and " << stage;
    hasFailed = true;
  }

  void addOperand(Operation *op, Value value) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (buffer && *buffer >= 0)
      return out->operands.push_back(*buffer);
    if (buffer)
      op->emitOpError("expected buffers from 0 on, got ") << *buffer;
    else
      op->emitOpError("expected a buffer for each value: run chimera-allocate "
                      "first");
    hasFailed = true;
  }

  void emit(Operation *op) {
    auto index = static_cast<uint32_t>(out->instructions.size());
    Fields fields = fieldsOf(op);
    checkReplica(op, fields.pipeline, fields.stage);
    auto first = static_cast<uint32_t>(out->operands.size());
    bool compute = !isa<WaitOp, GroupOp>(op);
    if (auto overwrite = dyn_cast<OverwriteOp>(op))
      addOperand(op, overwrite.getValue()); // `place` is the result's buffer
    else if (compute)
      for (Value operand : op->getOperands())
        addOperand(op, operand);
    size_t operands = out->operands.size() - first;
    for (Value result : op->getResults()) {
      if (isa<SendingType, ArrivingType>(result.getType()))
        transfers[result] = index;
      if (compute && !isa<SendingType>(result.getType()))
        addOperand(op, result);
    }
    if (auto group = dyn_cast<GroupOp>(op))
      for (auto [k, transfer] : llvm::enumerate(group.getTransfers()))
        transfers[transfer] = index + 1 + static_cast<uint32_t>(k);
    size_t results = out->operands.size() - first - operands;
    if (operands > UINT16_MAX || results > UINT16_MAX) {
      op->emitOpError("expected at most ")
          << UINT16_MAX << " operands and as many results, got " << operands
          << " and " << results;
      hasFailed = true;
    }
    out->instructions.emplace_back(
        fields.opcode, fields.kind, fields.part, fields.parts, fields.pipeline,
        fields.stage, fields.microBatch, fields.microBatches, fields.target,
        first, operands, results, versions.newerVersions(op),
        locations.find(op->getLoc()));
  }

  /// Emits an instruction that renames buffers, so that the yielded values are
  /// in the buffers in which the next section expects them.
  void emitRename(Block &section) {
    std::optional<BufferRenames> found = buffersToRename(worker, section);
    if (!found) {
      section.back().emitOpError("expected each loop-carried value in a buffer "
                                 "of its own: run chimera-allocate first");
      hasFailed = true;
      return;
    }
    BufferRenames &moves = *found;
    if (moves.empty())
      return;
    // The index of the stated peak does not count rename instructions. So a
    // peak at or after this rename moves by one.
    auto index = static_cast<uint32_t>(out->instructions.size());
    if (out->peak_instruction >= index)
      ++out->peak_instruction;
    auto first = static_cast<uint32_t>(out->operands.size());
    for (auto [from, to] : moves)
      out->operands.push_back(from);
    for (auto [from, to] : moves)
      out->operands.push_back(to);
    out->instructions.emplace_back(
        Opcode::Rename, ValueKind::Tokens, /*part=*/0, /*parts=*/1,
        /*pipeline=*/0, /*stage=*/0, /*micro_batch=*/0, /*micro_batches=*/0,
        /*target=*/0, first, moves.size(), moves.size(), /*weight_version=*/0,
        locations.find(section.back().getLoc()));
  }

  WorkerOp worker;
  const Layout &layout;
  uint32_t microBatches; ///< the number in a step
  SourceLocations locations;
  SmallVector<std::pair<uint32_t, AllReduceStartOp>> starts;
  Versions versions;
  std::unique_ptr<program::WorkerT> out;
  /// The index of the instruction that began each transfer.
  DenseMap<Value, uint32_t> transfers;
  bool hasFailed = false;
};

} // namespace

FailureOr<Stream> emitStream(WorkerOp worker, const Layout &layout,
                             uint32_t microBatches) {
  return StreamEmitter(worker, layout, microBatches).run();
}

} // namespace chimera
