//===- Emit.cpp - From the allocated IR to a program ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit.h"

#include "compiler/EmitStream.h"
#include "passes/Workers.h"
#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Printable.h"
#include "runtime/proof/Verify.h"

#include <map>

using namespace mlir;

namespace chimera {

namespace {

using program::ValueKind;

/// The tables of source files and source locations of the program.
class LocationTable {
public:
  explicit LocationTable(program::ProgramT &program) : program(program) {}

  uint32_t find(FileLineColLoc location) {
    auto [entry, isNew] = known.try_emplace(location, program.locations.size());
    if (isNew)
      program.locations.emplace_back(fileIndex(location.getFilename()),
                                     location.getLine(), location.getColumn());
    return entry->second;
  }

private:
  uint32_t fileIndex(StringRef path) {
    std::string name = program::printable(path);
    auto found = llvm::find(program.files, name);
    if (found == program.files.end())
      found = program.files.insert(found, name);
    return static_cast<uint32_t>(found - program.files.begin());
  }

  program::ProgramT &program;
  DenseMap<Attribute, uint32_t> known;
};

/// The communicators of the program: one for the gradients of each stage, one
/// for the gradients of tied parameters, one for the losses, and one for the
/// squared norms if gradients are clipped.
class Communicators {
public:
  explicit Communicators(program::ProgramT &program) : program(program) {}

  /// The communicator of `start`. Fails, with a diagnostic, if the width of the
  /// start is not that of the pipeline, or if the start does not list the same
  /// contributions as an earlier start of the same communicator.
  FailureOr<uint32_t> find(AllReduceStartOp start) {
    ValueKind kind = kindOf(start.getTransfer().getType());
    if (start.getWidth() != program.data_parallel)
      return start.emitOpError("expected width ")
             << program.data_parallel << ", the pipeline's data_parallel, got "
             << start.getWidth();
    auto [entry, isNew] = known.try_emplace(
        {kind, start.getStage(), start.getTied()},
        Known{static_cast<uint32_t>(program.communicators.size()), start});
    auto &[index, first] = entry->second;
    if (!isNew) {
      if (start.getWorkersAttr() != first.getWorkersAttr() ||
          start.getKeysAttr() != first.getKeysAttr())
        return start.emitOpError("expected the same contributions as in other "
                                 "starts of stage ")
               << start.getStage();
      return index;
    }
    auto communicator = std::make_unique<program::CommunicatorT>();
    communicator->kind = kind;
    for (size_t i = 0; i < start.getKeys().size(); ++i)
      communicator->contributions.emplace_back(
          start.getWorkers()[i], start.getKeys()[i], start.getStageOf(i));
    program.communicators.push_back(std::move(communicator));
    return index;
  }

private:
  struct Known {
    uint32_t index;
    AllReduceStartOp first; ///< the first start of the communicator
  };

  program::ProgramT &program;
  std::map<std::tuple<ValueKind, uint32_t, std::optional<uint32_t>>, Known>
      known;
};

/// Replaces the numbers of locations in the stream by those of the program, and
/// sets the communicator of each start of an all-reduce. Fails, with a
/// diagnostic, if a start contradicts an earlier one.
LogicalResult linkStream(Stream &stream, LocationTable &locations,
                         Communicators &communicators) {
  std::vector<program::Instruction> &instructions = stream.worker->instructions;
  for (auto [index, start] : stream.starts) {
    FailureOr<uint32_t> communicator = communicators.find(start);
    if (failed(communicator))
      return failure();
    instructions[index].mutate_target(*communicator);
  }
  SmallVector<uint32_t> numbers;
  for (FileLineColLoc location : stream.locations)
    numbers.push_back(locations.find(location));
  if (llvm::equal(numbers, llvm::seq<uint32_t>(0, numbers.size())))
    return success();
  for (program::Instruction &instruction : instructions)
    if (instruction.location() != kNoLocation)
      instruction.mutate_location(numbers[instruction.location()]);
  return success();
}

void emitTraining(PipelineOp pipeline, program::ProgramT &out) {
  TrainingOp::Properties training = trainingOf(pipeline);
  out.optimizer = std::make_unique<program::OptimizerT>(optimizerOf(pipeline));
  program::Types types = typesOf(pipeline);
  out.weight_type = types.weights;
  out.activation_type = types.activations;
  out.buffer_alignment = program::kBufferAlignment;
  out.micro_batch_size = static_cast<uint32_t>(pipeline.getMicroBatchSize());
  out.seed = training.seed.getInt();
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
    out.stages.emplace_back(
        first, last - first, cost.getForward(), cost.getBackward(),
        cost.inputGradientTime(), cost.weightGradientTime(),
        cost.recomputeTime(), cost.getUpdate(), bytes.getWeights(),
        bytes.getOptimizer(), bytes.getStash(), bytes.weightStashBytes(),
        bytes.getBoundary(), bytes.getCopy());
  }
  for (DirectionOp direction : layout.directions) {
    auto pipeline = std::make_unique<program::PipelineT>();
    pipeline->direction = direction.getWay() == Way::Up
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

FailureOr<PipelineOp> onlyPipelineOf(ModuleOp module) {
  SmallVector<PipelineOp> pipelines(module.getOps<PipelineOp>());
  if (pipelines.size() == 1)
    return pipelines.front();
  InFlightDiagnostic error =
      module.emitError("expected one chimera.pipeline for a program, got ")
      << pipelines.size();
  for (PipelineOp pipeline : pipelines)
    error.attachNote(pipeline.getLoc()) << "here is @" << pipeline.getSymName();
  return error;
}

std::unique_ptr<program::ProgramT> emitProgram(ModuleOp module) {
  FailureOr<PipelineOp> found = onlyPipelineOf(module);
  if (failed(found))
    return nullptr;
  PipelineOp pipeline = *found;
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return nullptr;
  FailureOr<std::unique_ptr<program::PackageT>> model = modelOf(pipeline);
  if (failed(model))
    return nullptr;
  if (layout->directions.size() > UINT16_MAX) {
    pipeline.emitOpError("expected at most ")
        << UINT16_MAX << " directions, got " << layout->directions.size();
    return nullptr;
  }
  auto out = std::make_unique<program::ProgramT>();
  out->producer = "chimera " CHIMERA_VERSION;
  // A quoted name in MLIR may have any bytes, so write the others as escapes.
  out->name = program::printable(pipeline.getSymName());
  out->schedule = scheduleNameOf(pipeline).str();
  out->model = std::move(*model);
  FailureOr<std::optional<program::Tied>> tied = tiedOf(pipeline, *layout);
  if (failed(tied))
    return nullptr;
  if (*tied)
    out->tied = std::make_unique<program::Tied>(**tied);
  FailureOr<const schedule::TimeUnit *> unit = timeUnitOf(pipeline);
  if (failed(unit))
    return nullptr;
  out->time_unit = (*unit)->name;
  if (const int64_t perUnit = ticksPerUnit(pipeline); perUnit > 1) {
    pipeline.emitOpError("expected whole times, because a program has no "
                         "fractions: multiply all times of the pipeline by ")
        << perUnit;
    return nullptr;
  }
  emitTraining(pipeline, *out);
  emitLayout(*layout, *out);
  SmallVector<WorkerOp> workers = workersOf(pipeline);
  for (auto [index, worker] : llvm::enumerate(workers)) {
    if (worker.getIndex() == index)
      continue;
    worker.emitOpError("expected worker ")
        << index << " next, in the order of workers";
    return nullptr;
  }
  std::vector<Stream> streams(workers.size());
  if (failed(forEachWorker(module.getContext(), workers.size(), [&](size_t i) {
        FailureOr<Stream> stream =
            emitStream(workers[i], *layout, out->micro_batches);
        if (succeeded(stream))
          streams[i] = std::move(*stream);
        return LogicalResult(stream);
      })))
    return nullptr;
  LocationTable locations(*out);
  Communicators communicators(*out);
  for (Stream &stream : streams) {
    if (failed(linkStream(stream, locations, communicators)))
      return nullptr;
    out->workers.push_back(std::move(stream.worker));
  }
  if (out->workers.size() != layout->workers) {
    pipeline.emitOpError("expected ")
        << layout->workers << " workers, got " << out->workers.size()
        << ": run the phases up to chimera-allocate first "
           "(--chimera-to-allocated does, and so does chimera-compile)";
    return nullptr;
  }
  SmallVector<uint32_t> withoutPeak;
  for (auto [index, worker] : llvm::enumerate(workers))
    if (!worker.getPeakBytes())
      withoutPeak.push_back(index);
  if (!withoutPeak.empty())
    program::computeMemoryPeaks(*out, {withoutPeak.data(), withoutPeak.size()});
  return out;
}

} // namespace chimera
