//===- Emit.cpp - From the allocated IR to a program ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit.h"

#include "dialect/State.h"
#include "passes/Bridge.h"
#include "passes/Buffers.h"
#include "passes/Workers.h"

#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;

namespace chimera {

namespace {

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
      .Case([](LossType) { return ValueKind::Loss; })
      .Case([](WeightsType) { return ValueKind::Weights; })
      .Case([](WeightGradientType) { return ValueKind::WeightGradient; })
      .Default([](Type) { return ValueKind::OptimizerState; });
}

/// The location of what no source names.
constexpr uint32_t kNowhere = UINT32_MAX;

/// The source locations of one stream, numbered as they come.
class Places {
public:
  uint32_t find(Location location) {
    // Most ops come from where the one before came from.
    if (LocationAttr(location) == last)
      return lastIndex;
    last = location;
    lastIndex = kNowhere;
    if (auto place = location->findInstanceOf<FileLineColLoc>()) {
      auto [entry, isNew] = known.try_emplace(place, list.size());
      if (isNew)
        list.push_back(place);
      lastIndex = entry->second;
    }
    return lastIndex;
  }

  ArrayRef<FileLineColLoc> all() const { return list; }

private:
  LocationAttr last;
  uint32_t lastIndex = kNowhere;
  SmallVector<FileLineColLoc> list;
  DenseMap<Attribute, uint32_t> known;
};

/// The program's tables of source files and locations.
class Locations {
public:
  explicit Locations(program::ProgramT &program) : program(program) {}

  uint32_t find(FileLineColLoc place) {
    auto [entry, isNew] = known.try_emplace(place, program.locations.size());
    if (isNew)
      program.locations.emplace_back(fileIndex(place.getFilename()),
                                     place.getLine(), place.getColumn());
    return entry->second;
  }

private:
  uint32_t fileIndex(StringRef name) {
    auto found = llvm::find(program.files, name);
    if (found == program.files.end())
      found = program.files.insert(found, name.str());
    return static_cast<uint32_t>(found - program.files.begin());
  }

  program::ProgramT &program;
  DenseMap<Attribute, uint32_t> known;
};

/// The groups that reduce: one for each stage's gradients, one for the losses.
class Communicators {
public:
  explicit Communicators(program::ProgramT &program) : program(program) {}

  /// None, with a diagnostic, where the start does not list the contributions
  /// that another member of its group does.
  FailureOr<uint32_t> find(AllReduceStartOp start) {
    ValueKind kind = kindOf(start.getTransfer().getType());
    if (start.getWidth() != program.data_parallel)
      return start.emitOpError("expected width ")
             << program.data_parallel << ", the pipeline's data_parallel, got "
             << start.getWidth();
    auto [entry, isNew] = known.try_emplace({kind, start.getStage()},
                                            program.communicators.size());
    if (!isNew) {
      const auto &known = program.communicators[entry->second]->contributions;
      bool equal = known.size() == start.getWorkers().size();
      for (size_t i = 0; equal && i < known.size(); ++i)
        equal =
            known[i].worker() == static_cast<uint32_t>(start.getWorkers()[i]) &&
            known[i].key() == static_cast<uint32_t>(start.getKeys()[i]);
      if (!equal)
        return start.emitOpError("expected the contributions that other starts "
                                 "of stage ")
               << start.getStage() << " list";
      return entry->second;
    }
    auto communicator = std::make_unique<program::CommunicatorT>();
    communicator->kind = kind;
    communicator->stage = start.getStage();
    for (auto [worker, key] : llvm::zip(start.getWorkers(), start.getKeys()))
      communicator->contributions.emplace_back(worker, key);
    program.communicators.push_back(std::move(communicator));
    return entry->second;
  }

private:
  program::ProgramT &program;
  std::map<std::pair<ValueKind, uint32_t>, uint32_t> known;
};

/// Which of several versions of a stage's weights an op reads.
class Versions {
public:
  /// Begins a section of steps that overlap.
  void enter(Block &section) {
    versions.clear();
    newest.clear();
    SmallVector<Carried> replicas = *carriedBy(section.getArgumentTypes());
    for (const Carried &replica : replicas) {
      for (unsigned k = 0; k < replica.versions; ++k)
        versions[section.getArgument(replica.first + k)] = {
            static_cast<uint32_t>(newest.size()), k};
      newest.push_back(replica.versions - 1);
    }
  }

  /// How many versions newer than the one it reads there are when `op` runs.
  /// Requires a call for each op, in the order of the stream.
  uint32_t readBy(Operation *op) {
    if (newest.empty())
      return 0;
    auto weights = llvm::find_if(op->getOperands(), [](Value operand) {
      return isa<WeightsType>(operand.getType());
    });
    if (weights == op->operand_end())
      return 0;
    Version read = versions.lookup(*weights);
    uint32_t behind = newest[read.replica] - read.number;
    if (isa<CopyOp>(op))
      versions[op->getResult(0)] = read;
    else if (isa<OptimizerStepOp>(op))
      versions[op->getResult(0)] = {read.replica, ++newest[read.replica]};
    return behind;
  }

private:
  struct Version {
    uint32_t replica = 0, number = 0;
  };
  DenseMap<Value, Version> versions;
  SmallVector<uint32_t> newest; ///< of each replica; empty with a flush
};

/// Writes one worker's stream. Others may do so at the same time; what is
/// numbered across workers is filled in by `link`.
class WorkerEmitter {
public:
  WorkerEmitter(WorkerOp worker, const Layout &layout, uint32_t microBatches)
      : worker(worker), layout(layout), microBatches(microBatches),
        out(std::make_unique<program::WorkerT>()) {}

  LogicalResult run() {
    bool overlaps = !worker.getPrologue().empty();
    if (!worker.getArguments() || (overlaps && !worker.getCarried()) ||
        !worker.getArenaBytes() || !worker.getPeakBytes() ||
        !worker.getPeakInstruction()) {
      return worker.emitOpError("expected an allocated worker: run "
                                "chimera-allocate first");
    }
    // They stand first, and what follows is long.
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
    out->peak_instruction = *worker.getPeakInstruction();
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
    out->peak_bytes = *worker.getPeakBytes();
    return success(!failed);
  }

  /// Gives the stream the program's numbers of locations and communicators.
  /// Null, with a diagnostic, where a start does not fit the others.
  std::unique_ptr<program::WorkerT> link(Locations &locations,
                                         Communicators &communicators) {
    for (auto [index, start] : starts) {
      FailureOr<uint32_t> communicator = communicators.find(start);
      if (mlir::failed(communicator))
        return nullptr;
      out->instructions[index].mutate_target(*communicator);
    }
    SmallVector<uint32_t> numbers;
    for (FileLineColLoc place : places.all())
      numbers.push_back(locations.find(place));
    if (llvm::equal(numbers, llvm::seq<uint32_t>(0, numbers.size())))
      return std::move(out);
    for (program::Instruction &instruction : out->instructions)
      if (instruction.location() != kNowhere)
        instruction.mutate_location(numbers[instruction.location()]);
    return std::move(out);
  }

private:
  /// The fields of an instruction that ops fill in.
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
        .Case([](ZeroOp o) { return ofReplica(o, Opcode::ZeroGradient); })
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
          return ofAction(o, Opcode::InputGradient, o.getRest().getType());
        })
        .Case([](WeightGradientOp o) {
          return ofAction(o, Opcode::WeightGradient, o.getNewSum().getType());
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
                        .stage = o.getStage()};
        })
        .Default([&](Operation *o) {
          o->emitOpError("expected an instruction");
          failed = true;
          return Fields{};
        });
  }

  /// The file numbers pipelines and stages in 16 bits: a number that is cut
  /// could name another replica.
  void checkReplica(Operation *op, uint32_t pipeline, uint32_t stage) {
    if (pipeline < layout.directions.size() && stage < layout.stages.size())
      return;
    op->emitOpError("expected a pipeline below ")
        << layout.directions.size() << " and a stage below "
        << layout.stages.size() << ", got " << pipeline << " and " << stage;
    failed = true;
  }

  void addOperand(Operation *op, Value value) {
    std::optional<int32_t> buffer = bufferOf(worker, value);
    if (buffer)
      return out->operands.push_back(*buffer);
    op->emitOpError("expected a buffer for each value: run chimera-allocate "
                    "first");
    failed = true;
  }

  void emit(Operation *op) {
    auto index = static_cast<uint32_t>(out->instructions.size());
    Fields fields = fieldsOf(op);
    checkReplica(op, fields.pipeline, fields.stage);
    auto first = static_cast<uint32_t>(out->operands.size());
    bool compute = !isa<WaitOp, GroupOp>(op);
    if (compute)
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
    if (operands > UINT16_MAX) {
      op->emitOpError("expected at most ")
          << UINT16_MAX << " operands, got " << operands;
      failed = true;
    }
    out->instructions.emplace_back(
        fields.opcode, fields.kind, fields.part, fields.parts, fields.pipeline,
        fields.stage, fields.microBatch, fields.microBatches, fields.target,
        first, operands, results, versions.readBy(op),
        places.find(op->getLoc()));
  }

  /// Lets what the section yields take the places where the next one looks.
  void emitRename(Block &section) {
    std::optional<Renames> found = renames(worker, section);
    if (!found) {
      section.back().emitOpError("expected values in buffers of their own that "
                                 "can change places: run chimera-allocate "
                                 "first");
      failed = true;
      return;
    }
    Renames &moves = *found;
    if (moves.empty())
      return;
    // The stated peak counts instructions without this one.
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
        places.find(section.back().getLoc()));
  }

  WorkerOp worker;
  const Layout &layout;
  uint32_t microBatches; ///< of a step
  Places places;
  SmallVector<std::pair<uint32_t, AllReduceStartOp>> starts;
  Versions versions;
  std::unique_ptr<program::WorkerT> out;
  /// The instruction that began each transfer.
  DenseMap<Value, uint32_t> transfers;
  bool failed = false;
};

void emitTraining(PipelineOp pipeline, program::ProgramT &out) {
  out.optimizer = std::make_unique<program::OptimizerT>();
  out.optimizer->name = "adamw";
  out.optimizer->learning_rate = pipeline.getLearningRate().convertToDouble();
  out.optimizer->beta1 = pipeline.getBeta1().convertToDouble();
  out.optimizer->beta2 = pipeline.getBeta2().convertToDouble();
  out.optimizer->epsilon = pipeline.getEpsilon().convertToDouble();
  out.optimizer->weight_decay = pipeline.getWeightDecay().convertToDouble();
  out.data_type = dataTypeOf(pipeline);
  out.micro_batch_size = static_cast<uint32_t>(pipeline.getMicroBatchSize());
  out.seed = pipeline.getSeed();
  out.micro_batches = static_cast<uint32_t>(pipeline.getMicroBatches());
  out.data_parallel = static_cast<uint32_t>(pipeline.getDataParallel());
  switch (updatesOf(pipeline)) {
  case schedule::Updates::Flush:
    out.updates = program::Updates::Flush;
    break;
  case schedule::Updates::EachMicroBatch:
    out.updates = program::Updates::EachMicroBatch;
    break;
  case schedule::Updates::EachStep:
    out.updates = program::Updates::EachStep;
    break;
  }
}

void emitLayout(const Layout &layout, program::ProgramT &out) {
  for (StageOp stage : layout.stages) {
    CostAttr cost = stage.getCost();
    BytesAttr bytes = stage.getBytes();
    uint32_t first = stage.getFirst().value_or(0);
    uint32_t last = stage.getLast().value_or(first);
    out.stages.emplace_back(first, last - first, cost.getForward(),
                            cost.getBackward(), cost.inputGradientTime(),
                            cost.weightGradientTime(), cost.recomputeTime(),
                            bytes.getWeights(), bytes.getOptimizer(),
                            bytes.getStash(), bytes.getBoundary());
  }
  for (DirectionOp direction : layout.directions) {
    auto pipeline = std::make_unique<program::PipelineT>();
    pipeline->direction = direction.getWay() == Direction::Up
                              ? program::Direction::Up
                              : program::Direction::Down;
    pipeline->workers.assign(direction.getPlacement().begin(),
                             direction.getPlacement().end());
    pipeline->micro_batches.assign(direction.getMicroBatches().begin(),
                                   direction.getMicroBatches().end());
    if (direction.getForwards())
      pipeline->forwards.assign(direction.getForwards()->begin(),
                                direction.getForwards()->end());
    pipeline->backward_parts = direction.getBackwardParts();
    out.pipelines.push_back(std::move(pipeline));
  }
}

} // namespace

std::unique_ptr<program::ProgramT> emitProgram(ModuleOp module) {
  SmallVector<PipelineOp> pipelines(module.getOps<PipelineOp>());
  if (pipelines.size() != 1) {
    module.emitError("expected one chimera.pipeline to make a program of, got ")
        << pipelines.size();
    return nullptr;
  }
  PipelineOp pipeline = pipelines.front();
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return nullptr;
  FailureOr<std::unique_ptr<program::ModelT>> model = modelOf(pipeline);
  if (failed(model))
    return nullptr;
  if (layout->directions.size() > UINT16_MAX) {
    pipeline.emitOpError("expected at most ")
        << UINT16_MAX << " directions, got " << layout->directions.size();
    return nullptr;
  }
  auto out = std::make_unique<program::ProgramT>();
  out->producer = "chimera " CHIMERA_VERSION;
  out->name = pipeline.getSymName().str();
  out->schedule = pipeline.getSchedule().str();
  out->model = std::move(*model);
  // Stages of a model cost floating-point operations, bare ones slots.
  out->time_unit = out->model ? "flop" : "slot";
  emitTraining(pipeline, *out);
  emitLayout(*layout, *out);
  std::vector<WorkerEmitter> emitters;
  for (WorkerOp worker : workersOf(pipeline)) {
    if (worker.getIndex() != emitters.size()) {
      worker.emitOpError("expected worker ")
          << emitters.size() << " next, in the order of workers";
      return nullptr;
    }
    emitters.emplace_back(worker, *layout, out->micro_batches);
  }
  if (failed(forEachWorker(module.getContext(), emitters.size(),
                           [&](size_t i) { return emitters[i].run(); })))
    return nullptr;
  Locations locations(*out);
  Communicators communicators(*out);
  for (WorkerEmitter &emitter : emitters) {
    out->workers.push_back(emitter.link(locations, communicators));
    if (!out->workers.back())
      return nullptr;
  }
  if (out->workers.size() != layout->workers()) {
    pipeline.emitOpError("expected ")
        << layout->workers() << " workers, got " << out->workers.size()
        << ": run the phases up to chimera-allocate first";
    return nullptr;
  }
  return out;
}

} // namespace chimera
