//===- StepMaker.h - The ops of a step --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_STEPMAKER_H
#define CHIMERA_PASSES_STEPMAKER_H

#include "passes/Bridge.h"

#include "mlir/IR/Builders.h"

#include <map>

namespace chimera {

/// Makes the ops of a pipeline's steps at `builder`. Types and attributes are
/// uniqued by a search: each is made once.
class StepMaker {
public:
  /// What of a stage goes through all steps.
  struct StageTypes {
    mlir::Type weights, state;
    WeightGradientType sum;
  };

  StepMaker(PipelineOp pipeline, const Layout &layout,
            const schedule::Problem &problem, int64_t tokenBytes,
            int64_t labelBytes);

  size_t stages() const { return layout.stages.size(); }
  const StageTypes &typesOf(uint32_t s) const { return types[s]; }
  /// Of one micro-batch, or of a part of one.
  mlir::Type stashOf(uint32_t s) const { return pieces[s].stash; }
  /// What stage `s`, not the last, gives to the next for one micro-batch.
  mlir::Type activationOf(uint32_t s) { return rangeOf(1).results[s].front(); }

  /// Says into how many parts the backwards that follow cut a micro-batch.
  void setParts(uint32_t parts);

  /// With the loads that it needs; `input` is null on stage 0.
  ForwardOp forward(uint32_t p, uint32_t s, uint32_t m, uint32_t count,
                    mlir::Value input, mlir::Value weights);
  /// Makes the backward or its two halves, updates `sum`, returns the gradient
  /// for the stage before, if there is one.
  mlir::Value backward(uint32_t p, uint32_t s, uint32_t m, uint32_t k,
                       mlir::Value stash, mlir::Value gradient,
                       mlir::Value weights, mlir::Value &sum);
  mlir::Value copy(uint32_t p, uint32_t s, mlir::Value weights);
  /// The sums over all copies, or what is given where there is but one
  /// contribution. With `tied` the gradients are of stage `s` and of that one
  /// in turn.
  llvm::SmallVector<mlir::Value>
  reduce(uint32_t s, llvm::ArrayRef<mlir::Value> gradients,
         std::optional<uint32_t> tied = std::nullopt);
  /// A gradient cut at byte `at`, and made whole again.
  mlir::ValueRange split(uint32_t p, uint32_t s, mlir::Value gradient,
                         int64_t at);
  mlir::Value join(uint32_t p, uint32_t s, mlir::ValueRange pieces);
  void reduceLosses(llvm::ArrayRef<mlir::Value> losses);
  /// With the gradient of one micro-batch, or of all.
  OptimizerStepOp update(uint32_t p, uint32_t s, mlir::Value weights,
                         mlir::Value state, mlir::Value gradient,
                         std::optional<uint32_t> m = std::nullopt);

  /// Where the ops of a stage come from: its own place in the description,
  /// named after pipeline and stage.
  mlir::Location locationOf(uint32_t p, uint32_t s);

  mlir::OpBuilder builder;
  const mlir::Location loc; ///< of the pipeline

private:
  /// What forwards that cover the same number of micro-batches make and read.
  struct RangeTypes {
    mlir::IntegerAttr count; ///< null for one
    mlir::Type tokens, labels;
    std::vector<llvm::SmallVector<mlir::Type>> results; ///< of each stage
  };
  /// What the backwards of a pipeline make and read.
  struct PieceTypes {
    mlir::IntegerAttr parts; ///< null for one
    mlir::Type stash, weightStash, gradient;
  };

  /// The same, named after the micro-batch too.
  mlir::Location locationOf(uint32_t p, uint32_t s, uint32_t m);
  mlir::Location named(const llvm::Twine &name, mlir::Location place);
  const RangeTypes &rangeOf(uint32_t count);
  mlir::Value load(mlir::Type type, uint32_t p, uint32_t s, uint32_t m,
                   mlir::IntegerAttr count);

  PipelineOp pipeline;
  const Layout &layout;
  const schedule::Splits &splits;
  int64_t tokenBytes, labelBytes;
  mlir::Type loss;
  llvm::SmallVector<StageTypes> types;
  uint32_t parts = 1;
  /// By stage, and by size of the range.
  llvm::SmallVector<PieceTypes> pieces;
  std::map<uint32_t, RangeTypes> ranges;
  /// Attributes of small numbers.
  std::vector<mlir::IntegerAttr> numbers;
  /// Locations, null until they are asked for: of replicas, and by stage and
  /// micro-batch, which has one pipeline. A step has few names, each made once.
  std::vector<mlir::LocationAttr> replicas, cells;
  std::vector<mlir::StringAttr> microBatchNames;
  size_t width; ///< micro-batches of a section, as they are numbered
};

} // namespace chimera

#endif // CHIMERA_PASSES_STEPMAKER_H
