//===- UnrollSections.cpp - Steps that overlap, as a graph ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Steps.h"
#include "passes/schedule/Sections.h"
#include "passes/schedule/StepBuilder.h"
#include "passes/schedule/Unroll.h"

using namespace mlir;

namespace chimera {

namespace {

/// Makes steps that overlap, without a flush. Let D be the number of stages and
/// N the number of micro-batches. Stage s runs d = D-1-s forwards ahead of its
/// backwards. For example, with D = 3 and N = 3 (micro-batches 3 and 4 are
/// micro-batches 0 and 1 of the next step):
///
///            prologue | step              | epilogue
///   stage 0  F0 F1    | F2 B0 F3 B1 F4 B2 | F2 B0 B1 B2
///   stage 1  F0       | F1 B0 F2 B1 F3 B2 | F1 B0 F2 B1 B2
///   stage 2           | F0 B0 F1 B1 F2 B2 | F0 B0 F1 B1 F2 B2
///
/// In column j of a section, every stage runs F of micro-batch j + d and B of
/// micro-batch j. An activation is made one column before the next stage uses
/// the activation. So the last activation that a stage sends is loop-carried,
/// like the stashes.
class SectionUnroller {
public:
  SectionUnroller(StepBuilder &build, const schedule::Problem &problem)
      : build(build), problem(problem), builder(build.builder), loc(build.loc),
        stages(static_cast<int32_t>(build.stages())),
        microBatches(problem.microBatches()) {}

  void run() {
    build.setParts(1);
    makePrologue();
    auto step = builder.create<StepOp>(loc);
    makeSection(step, 2 * microBatches, microBatches);
    builder.setInsertionPointAfter(step);
    auto epilogue = builder.create<EpilogueOp>(loc);
    makeSection(epilogue, microBatches, std::nullopt);
  }

private:
  /// The current values of a stage. `weights` has the versions of its weights,
  /// oldest first. `inputs` and `stashes` have the inputs and the stashes of
  /// its forwards, by micro-batch of the section.
  struct StageValues {
    SmallVector<Value> weights;
    Value state, sum;
    std::vector<Value> inputs, stashes;
  };

  void makePrologue() {
    auto prologue = builder.create<PrologueOp>(loc);
    Block &block = prologue.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    stageValues.assign(stages, StageValues());
    for (int32_t s = 0; s < stages; ++s) {
      StageValues &values = stageValues[s];
      resize(values);
      Location own = build.locationOf(0, s);
      Value weights = block.addArgument(build.typesOf(s).weights, own);
      values.state = block.addArgument(build.typesOf(s).state, own);
      // All versions of the weights are equal at first, so the older ones are
      // copies.
      for (int32_t k = 1; k < schedule::weightVersions(problem, s); ++k)
        values.weights.push_back(build.copy(0, s, weights));
      values.weights.push_back(weights);
    }
    for (int32_t column = 1 - stages; column < 0; ++column)
      forwards(column, microBatches);
    yieldLoopCarried(0);
    builder.setInsertionPointAfter(prologue);
  }

  /// Makes a section with N backwards on each stage, and with the forwards of
  /// micro-batches below `end`. Micro-batches from `next` on are in flight at
  /// the end of the section, so their values are loop-carried. The last section
  /// has no `next`: no micro-batch is in flight at its end.
  void makeSection(SectionOp section, int32_t end,
                   std::optional<int32_t> next) {
    Block &block = section.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    for (int32_t s = 0; s < stages; ++s)
      addArguments(block, s);
    losses.assign(microBatches, Value());
    for (int32_t j = 0; j < microBatches; ++j) {
      forwards(j, end);
      Value gradient = losses[j];
      for (int32_t s = stages; s-- > 0;)
        gradient = backwardAt(s, j, gradient);
    }
    sumLossesAndUpdate();
    if (next)
      return yieldLoopCarried(*next);
    SmallVector<Value> results;
    for (StageValues &values : stageValues)
      results.append({values.weights.back(), values.state});
    builder.create<YieldOp>(loc, results);
  }

  void resize(StageValues &values) {
    values.inputs.assign(microBatches + stages, Value());
    values.stashes.assign(microBatches + stages, Value());
  }

  /// Adds the loop-carried values of stage `s` as arguments of `block`.
  void addArguments(Block &block, int32_t s) {
    StageValues &values = stageValues[s] = StageValues();
    resize(values);
    Location own = build.locationOf(0, s);
    for (int32_t k = 0; k < schedule::weightVersions(problem, s); ++k)
      values.weights.push_back(
          block.addArgument(build.typesOf(s).weights, own));
    values.state = block.addArgument(build.typesOf(s).state, own);
    int32_t ahead = forwardsAhead(problem, s);
    for (int32_t m = 0; m < ahead; ++m)
      values.stashes[m] = block.addArgument(build.stashOf(s), own);
    if (s > 0)
      values.inputs[ahead] = block.addArgument(build.activationOf(s - 1), own);
  }

  /// Ends a section. The section yields the values of the micro-batches in
  /// flight. The first of these micro-batches is `next`.
  void yieldLoopCarried(int32_t next) {
    SmallVector<Value> results;
    for (int32_t s = 0; s < stages; ++s) {
      StageValues &values = stageValues[s];
      int32_t ahead = forwardsAhead(problem, s);
      llvm::append_range(results,
                         ArrayRef(values.weights)
                             .take_back(schedule::weightVersions(problem, s)));
      results.push_back(values.state);
      for (int32_t m = next; m < next + ahead; ++m)
        results.push_back(values.stashes[m]);
      if (s > 0)
        results.push_back(values.inputs[next + ahead]);
    }
    builder.create<YieldOp>(loc, results);
  }

  /// Makes the forwards of a column, except for micro-batches outside of [0,
  /// end).
  void forwards(int32_t column, int32_t end) {
    for (int32_t s = 0; s < stages; ++s) {
      int32_t m = column + forwardsAhead(problem, s);
      if (m < 0 || m >= end)
        continue;
      StageValues &values = stageValues[s];
      ForwardOp forward = build.forward(0, s, m, /*count=*/1, values.inputs[m],
                                        weightsFor(s, m));
      values.stashes[m] = forward.getStashes().front();
      (s + 1 == stages ? losses : stageValues[s + 1].inputs)[m] =
          forward.getOutputs().front();
    }
  }

  Value weightsFor(int32_t s, int32_t m) {
    return stageValues[s].weights[versionInSection(problem, s, m)];
  }

  /// Makes a backward. If each micro-batch has an update, makes the update too.
  Value backwardAt(int32_t s, int32_t m, Value gradient) {
    StageValues &values = stageValues[s];
    bool updatesNow = problem.updates == schedule::Updates::EachMicroBatch;
    if (updatesNow)
      values.sum = {}; // a new sum for each micro-batch
    Value before = build.backward(0, s, m, /*k=*/0, values.stashes[m], gradient,
                                  weightsFor(s, m), values.sum);
    if (updatesNow)
      update(s, build.reduce(s, values.sum).front(), m);
    return before;
  }

  void update(int32_t s, Value gradient, std::optional<uint32_t> microBatch) {
    StageValues &values = stageValues[s];
    OptimizerStepOp update =
        build.update(0, s, values.weights.back(), values.state, gradient,
                     /*norm=*/{}, microBatch);
    values.weights.push_back(update.getNewWeights());
    values.state = update.getNewState();
  }

  /// Sums the losses. If each step has an update, also makes the updates.
  void sumLossesAndUpdate() {
    bool updatesNow = problem.updates == schedule::Updates::EachStep;
    SmallVector<Value> sums(stages);
    for (int32_t s = stages; updatesNow && s-- > 0;)
      sums[s] = build.reduce(s, stageValues[s].sum).front();
    build.reduceLosses(losses);
    for (int32_t s = stages; updatesNow && s-- > 0;)
      update(s, sums[s], std::nullopt);
  }

  StepBuilder &build;
  const schedule::Problem &problem;
  OpBuilder &builder;
  Location loc;
  int32_t stages, microBatches;
  std::vector<StageValues> stageValues; ///< by stage
  std::vector<Value> losses;            ///< by micro-batch of the section
};

} // namespace

void unrollSections(StepBuilder &build, const schedule::Problem &problem) {
  SectionUnroller(build, problem).run();
}

} // namespace chimera
