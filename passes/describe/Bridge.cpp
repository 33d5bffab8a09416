//===- Bridge.cpp - From the IR to the schedule library -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/describe/Bridge.h"

#include "dialect/LoopCarried.h"
#include "passes/describe/CostInputs.h"
#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Saturated.h"

#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <set>

using namespace mlir;

namespace chimera {

/// Puts `op` into `list` at the index of the op. Fails with a diagnostic if the
/// index is not below `count`, or if another op has it.
template <typename Op>
static LogicalResult place(Op op, size_t count, SmallVectorImpl<Op> &list) {
  size_t index = op.getIndex();
  if (index >= count)
    return op.emitOpError("expected an index below ") << count;
  list.resize(std::max(list.size(), index + 1));
  if (list[index]) {
    InFlightDiagnostic error =
        op.emitOpError("expected an index that no other op has, got ") << index;
    error.attachNote(list[index].getLoc()) << "here first";
    return error;
  }
  list[index] = op;
  return success();
}

template <typename Op> static SmallVector<Op> opsOf(PipelineOp pipeline) {
  if (pipeline.getBody().empty())
    return {};
  return llvm::to_vector(pipeline.getBody().front().getOps<Op>());
}

FailureOr<Layout> stagesOf(PipelineOp pipeline) {
  Layout layout;
  size_t stages = pipeline.getStages();
  layout.workers = pipeline.workerCount();
  for (StageOp stage : opsOf<StageOp>(pipeline))
    if (failed(place(stage, stages, layout.stages)))
      return failure();
  if (layout.stages.empty() && pipeline.getSchedule() &&
      !opsOf<DirectionOp>(pipeline).empty())
    return pipeline.emitOpError("expected schedule(NAME), or directions and "
                                "orders in its place, got both");
  if (layout.stages.size() != stages ||
      llvm::is_contained(layout.stages, StageOp()))
    return pipeline.emitOpError("expected ")
           << stages
           << " stages: run chimera-partition first "
              "(--chimera-to-scheduled does), or give all";
  return layout;
}

FailureOr<Layout> layoutOf(PipelineOp pipeline) {
  FailureOr<Layout> layout = stagesOf(pipeline);
  if (failed(layout))
    return failure();
  SmallVector<DirectionOp> directions = opsOf<DirectionOp>(pipeline);
  size_t stages = layout->stages.size();
  for (DirectionOp direction : directions) {
    if (direction.getPlacement().size() != stages)
      return direction.emitOpError("expected a placement of ")
             << stages << " stages, got " << direction.getPlacement().size();
    for (int32_t worker : direction.getPlacement())
      if (static_cast<size_t>(worker) >= layout->workers)
        return direction.emitOpError("expected workers below ")
               << layout->workers << ", got " << worker;
    if (failed(place(direction, directions.size(), layout->directions)))
      return failure();
  }
  if (directions.empty())
    return pipeline.emitOpError("expected directions")
           << (pipeline.getSchedule() ? ": run chimera-partition first "
                                        "(--chimera-to-scheduled does)"
                                      : ", as it names no schedule that would "
                                        "place its stages");
  return layout;
}

FailureOr<std::optional<program::Tied>> tiedOf(PipelineOp pipeline,
                                               const Layout &layout) {
  FailureOr<std::unique_ptr<program::PackageT>> model = modelOf(pipeline);
  if (failed(model))
    return failure();
  if (!*model || !program::isTied(**model) || layout.stages.size() == 1)
    return std::optional<program::Tied>();
  if (schedule::stepsOverlap(updatesOf(pipeline)))
    return pipeline.emitOpError("expected a schedule with a flush for a tied "
                                "model, got updates(")
           << stringifyUpdates(pipeline.getUpdates())
           << "): without one, first and last stage update their copies of "
              "the embedding at different times";
  StageOp first = layout.stages.front(), last = layout.stages.back();
  if (failed(checkModelStage(first, **model)) ||
      failed(checkModelStage(last, **model)))
    return failure();
  std::optional<program::Tied> tied = program::tiedParameters(
      **model, typesOf(pipeline), *last.getLast() - *last.getFirst());
  if (!tied)
    return last.emitOpError("expected some but not all layers of the tied "
                            "model in the last of several stages");
  // A worker must not have a tied stage twice. If it had, the update of each
  // replica would need the gradient sum of the other replica.
  for (uint32_t s : {uint32_t(0), uint32_t(layout.stages.size() - 1)}) {
    std::set<int32_t> holders;
    for (DirectionOp direction : layout.directions)
      if (!holders.insert(direction.getPlacement()[s]).second)
        return direction.emitOpError("expected stage ")
               << s << " of a tied model once on worker "
               << direction.getPlacement()[s] << ", got it twice";
  }
  return tied;
}

LogicalResult verifySize(PipelineOp pipeline,
                         const schedule::Problem &problem) {
  std::map<int32_t, size_t> losses; // number of losses of each worker
  for (const schedule::Pipeline &laid : problem.pipelines)
    losses[laid.workers.back()] += laid.microBatches.size();
  for (auto [worker, count] : losses)
    if (count > UINT16_MAX)
      return pipeline.emitOpError("expected at most ")
             << UINT16_MAX
             << " micro-batches whose losses one worker makes, got " << count
             << " on worker " << worker;
  return pipeline.verifyActions(
      problem.steps, schedule::maxParts(problem.pipelines),
      pipeline.getSplitBackward() || problem.splits.any());
}

static schedule::AllReducePolicy policyOf(PipelineOp pipeline) {
  switch (pipeline.getAllReduce()) {
  case AllReducePolicy::Lazy:
    return schedule::AllReducePolicy::Lazy;
  case AllReducePolicy::Eager:
    return schedule::AllReducePolicy::Eager;
  case AllReducePolicy::EagerOpt:
    return schedule::AllReducePolicy::EagerOpt;
  }
  llvm_unreachable("no such policy");
}

FailureOr<schedule::Workload> workloadOf(PipelineOp pipeline,
                                         const Layout &layout) {
  if (failed(timeUnitOf(pipeline)))
    return failure();
  schedule::Workload work;
  work.workers = static_cast<int32_t>(layout.workers);
  work.width = static_cast<int32_t>(pipeline.getDataParallel());
  const int64_t perUnit = ticksPerUnit(pipeline);
  for (StageOp stage : layout.stages) {
    CostAttr cost = stage.getCost();
    auto ticks = [&](int64_t time) {
      return ticksOf(time, cost.getPlaces(), perUnit);
    };
    work.stages.push_back(
        {ticks(cost.getForward()), ticks(cost.getBackward()),
         ticks(cost.inputGradientTime()), ticks(cost.weightGradientTime()),
         ticks(cost.recomputeTime()), ticks(cost.getUpdate())});
    if (int64_t paired = cost.getPairedForward(); paired > 0)
      work.stages.back().pairedForward = ticks(paired);
    if (int64_t joined = cost.getJoinedWeightGradient(); joined > 0)
      work.stages.back().joinedWeightGradient = ticks(joined);
    BytesAttr bytes = stage.getBytes();
    work.bytes.push_back({bytes.getWeights(), bytes.getOptimizer(),
                          bytes.getStash(), bytes.weightStashBytes(),
                          bytes.getBoundary(), bytes.getCopy()});
  }
  FailureOr<std::optional<program::Tied>> tied = tiedOf(pipeline, layout);
  if (failed(tied))
    return failure();
  if (*tied)
    work.tiedBytes = static_cast<int64_t>((*tied)->bytes());
  work.clips = trainingOf(pipeline).clip_norm != nullptr;
  if (work.clips && schedule::stepsOverlap(updatesOf(pipeline)))
    return pipeline.emitOpError("expected a schedule with a flush for "
                                "clip_norm, got updates(")
           << stringifyUpdates(pipeline.getUpdates())
           << "): without one, a stage updates its weights before the "
              "gradients of the other stages are known";
  work.policy = policyOf(pipeline);
  work.bucketBytes = pipeline.getBucketBytes().value_or(0);
  MachineOp machine = machineOf(pipeline);
  if (machine)
    static_cast<schedule::Network &>(work) = networkOf(machine);
  if (LinkAttr link = pipeline.getLinkAttr())
    for (schedule::LinkClass *links : work.classes())
      links->link = linkOf(link, perUnit);
  return work;
}

static schedule::Pipeline pipelineOf(DirectionOp direction) {
  schedule::Pipeline laid;
  laid.up = direction.getWay() == Way::Up;
  laid.workers.assign(direction.getPlacement().begin(),
                      direction.getPlacement().end());
  laid.microBatches.assign(direction.getMicroBatches().begin(),
                           direction.getMicroBatches().end());
  if (std::optional<ArrayRef<int32_t>> forwards = direction.getForwards())
    laid.forwards.assign(forwards->begin(), forwards->end());
  laid.backwardParts = static_cast<int32_t>(direction.getBackwardParts());
  return laid;
}

FailureOr<schedule::Problem> problemOf(PipelineOp pipeline) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return failure();
  FailureOr<schedule::Workload> work = workloadOf(pipeline, *layout);
  if (failed(work))
    return failure();
  schedule::Problem problem;
  static_cast<schedule::Workload &>(problem) = std::move(*work);
  problem.updates = updatesOf(pipeline);
  if (schedule::stepsOverlap(problem.updates))
    problem.steps = 2;
  for (DirectionOp direction : layout->directions)
    problem.pipelines.push_back(pipelineOf(direction));
  if (std::string error = schedule::check(problem); !error.empty())
    return pipeline.emitOpError(error);
  if (failed(verifySize(pipeline, problem)))
    return failure();
  if (problem.microBatches() !=
      static_cast<int32_t>(pipeline.getMicroBatches()))
    return pipeline.emitOpError("expected directions that share ")
           << pipeline.getMicroBatches() << " micro-batches, got "
           << problem.microBatches();
  return problem;
}

static schedule::Kind kindOf(ActionOp op) {
  return llvm::TypeSwitch<Operation *, schedule::Kind>(op)
      .Case([](ForwardOp) { return schedule::Kind::Forward; })
      .Case([](BackwardOp) { return schedule::Kind::Backward; })
      .Case([](InputGradientOp) { return schedule::Kind::InputGradient; })
      .Case([](WeightGradientOp) { return schedule::Kind::WeightGradient; })
      .Case([](RecomputeOp) { return schedule::Kind::Recompute; });
}

schedule::Action actionOf(ActionOp op) {
  return {kindOf(op),
          static_cast<int32_t>(op.getPipeline()),
          static_cast<int32_t>(op.getStage()),
          static_cast<int32_t>(op.getMicroBatch()),
          static_cast<uint16_t>(op.getCount()),
          static_cast<uint8_t>(op.getPart()),
          static_cast<uint8_t>(op.getParts()),
          op.getJoined()};
}

FailureOr<schedule::Schedule> scheduleOf(PipelineOp pipeline) {
  schedule::Schedule schedule;
  schedule.workers.resize(pipeline.workerCount());
  schedule.slots.resize(pipeline.workerCount());
  bool allSlots = true;
  // If steps overlap, the schedule has two steps. An epilogue belongs to the
  // second step but numbers its micro-batches from 0. So add the number of
  // micro-batches of the first step.
  auto last = static_cast<int32_t>(pipeline.getMicroBatches());
  auto add = [&](Block &block, std::optional<uint32_t> onlyWorker,
                 int32_t firstMicroBatch) -> LogicalResult {
    for (auto action : block.getOps<ActionOp>()) {
      std::optional<uint32_t> worker =
          onlyWorker ? onlyWorker : action.getWorker();
      if (!worker)
        return action.emitOpError(
            "expected an action to name its worker (on N): write it, or "
            "let chimera-schedule order all actions");
      if (*worker >= schedule.workers.size())
        return action.emitOpError("expected a worker below ")
               << schedule.workers.size() << ", got " << *worker;
      schedule::Action labelled = actionOf(action);
      labelled.microBatch += firstMicroBatch;
      schedule.workers[*worker].push_back(labelled);
      allSlots &= action.getSlot().has_value();
      schedule.slots[*worker].push_back(action.getSlot().value_or(0));
    }
    return success();
  };
  // The loop body of a worker begins after the prologue and ends before the
  // epilogue.
  auto addAll = [&](ArrayRef<Block *> sections,
                    std::optional<uint32_t> onlyWorker) -> LogicalResult {
    for (auto [i, section] : llvm::enumerate(sections)) {
      if (failed(add(*section, onlyWorker, i == 2 ? last : 0)))
        return failure();
      if (sections.size() == 1 || i == 2)
        continue;
      schedule.bodies.resize(schedule.workers.size());
      for (auto [body, row] : llvm::zip(schedule.bodies, schedule.workers))
        if (!onlyWorker || &row == &schedule.workers[*onlyWorker])
          (i == 0 ? body.begin : body.end) = static_cast<int32_t>(row.size());
    }
    return success();
  };
  bool found = false;
  if (!pipeline.getBody().empty()) {
    Block &body = pipeline.getBody().front();
    SmallVector<Block *, 3> blocks;
    for (auto section : body.getOps<SectionOp>())
      blocks.push_back(&section.getBody().front());
    if (failed(addAll(blocks, std::nullopt)))
      return failure();
    found = !blocks.empty();
    for (auto worker : body.getOps<WorkerOp>()) {
      found = true;
      if (failed(addAll(worker.getSections(), worker.getIndex())))
        return failure();
    }
  }
  if (!found)
    return pipeline.emitOpError(
        "expected a scheduled step: run chimera-schedule first");
  if (!allSlots)
    schedule.slots.clear();
  return schedule;
}

LogicalResult
report(ArrayRef<schedule::Violation> violations,
       function_ref<InFlightDiagnostic(const schedule::Violation &)> begin,
       function_ref<Location(int32_t worker, int32_t index)> locationOf) {
  constexpr size_t kMost = 20;
  bool slots = false;
  for (const schedule::Violation &violation : violations.take_front(kMost)) {
    InFlightDiagnostic error = begin(violation) << violation.message;
    for (const schedule::Violation::Note &note : violation.notes)
      if (note.index < 0)
        error.attachNote() << note.message;
      else if (locationOf)
        error.attachNote(locationOf(note.worker, note.index)) << note.message;
    bool ofSlots =
        violation.constraint == schedule::Violation::Constraint::Slots;
    if (ofSlots && !slots)
      error.attachNote() << "to run every action as early as its order "
                            "allows, delete the slot of one action of the "
                            "step, or every . of all orders";
    slots |= ofSlots;
  }
  if (violations.size() > kMost)
    begin(schedule::Violation())
        << "and " << violations.size() - kMost << " more violations";
  return success(violations.empty());
}

LogicalResult report(Operation *op, const Twine &prefix,
                     ArrayRef<schedule::Violation> violations) {
  return report(violations, [&](const schedule::Violation &) {
    return op->emitOpError(prefix);
  });
}

LogicalResult reportOnActions(ArrayRef<SectionOp> sections,
                              ArrayRef<schedule::Violation> violations) {
  if (violations.empty())
    return success();
  std::map<uint32_t, std::vector<Operation *>> workers;
  for (SectionOp section : sections)
    for (auto action : section.getBody().getOps<ActionOp>())
      workers[*action.getWorker()].push_back(action);
  auto begin = [&](const schedule::Violation &violation) {
    Operation *op = sections.front();
    if (violation.index >= 0)
      op = workers[violation.worker][violation.index];
    return op->emitOpError();
  };
  return report(violations, begin, [&](int32_t worker, int32_t index) {
    return workers[worker][index]->getLoc();
  });
}

LogicalResult verifyReplicas(ArrayRef<SectionOp> sections,
                             const Layout &layout) {
  size_t replicas = layout.directions.size() * layout.stages.size();
  for (SectionOp section : sections) {
    Block &block = section.getBody().front();
    for (TypeRange types : {TypeRange(block.getArgumentTypes()),
                            TypeRange(block.back().getOperandTypes())}) {
      std::optional<SmallVector<LoopCarried>> loopCarried =
          loopCarriedOf(types);
      if (!loopCarried || loopCarried->size() != replicas)
        return section->emitOpError("expected weights and optimizer state of ")
               << replicas << " replicas as arguments, got "
               << (loopCarried ? loopCarried->size() : 0);
    }
  }
  return success();
}

std::vector<SmallVector<int32_t>> replicasByWorker(const Layout &layout) {
  std::vector<SmallVector<int32_t>> holds(layout.workers);
  for (size_t p = 0; p < layout.directions.size(); ++p)
    for (size_t s = 0; s < layout.stages.size(); ++s)
      holds[layout.workerOf(p, s)].append(
          {static_cast<int32_t>(p), static_cast<int32_t>(s)});
  return holds;
}

SmallVector<uint32_t> ownerWorkers(TypeRange types, const Layout &layout) {
  SmallVector<uint32_t> owners;
  size_t stages = layout.stages.size();
  for (auto [index, replica] : llvm::enumerate(*loopCarriedOf(types)))
    owners.resize(replica.end(),
                  layout.workerOf(index / stages, index % stages));
  return owners;
}

FailureOr<SmallVector<SectionOp, 3>> sectionsOf(PipelineOp pipeline) {
  SmallVector<SectionOp, 3> sections;
  if (!pipeline.getBody().empty())
    llvm::append_range(sections,
                       pipeline.getBody().front().getOps<SectionOp>());
  if (sections.empty())
    return pipeline.emitOpError("expected a step: run chimera-unroll first");
  return sections;
}

} // namespace chimera
