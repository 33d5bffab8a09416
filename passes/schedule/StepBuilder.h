//===- StepBuilder.h - A builder of a step's ops ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_STEPBUILDER_H
#define CHIMERA_PASSES_SCHEDULE_STEPBUILDER_H

#include "passes/describe/Bridge.h"

#include "mlir/IR/Builders.h"

#include <map>

namespace chimera {

/// Makes the ops of a pipeline's steps at `builder`. In all functions, p is a
/// pipeline, s a stage, m a micro-batch of the section, and k a part of the
/// micro-batch. MLIR looks up types and attributes each time that they are
/// created. So this class creates each of them only once.
class StepBuilder {
public:
  /// The types of a stage's values that do not depend on the micro-batch.
  struct StageTypes {
    mlir::Type weights, state;
    WeightGradientType sum;
  };

  StepBuilder(PipelineOp pipeline, const Layout &layout,
              const schedule::Problem &problem, int64_t tokenBytes,
              int64_t labelBytes);

  size_t stages() const { return layout.stages.size(); }
  const StageTypes &typesOf(uint32_t s) const { return types[s]; }
  /// The type of the stash of one micro-batch, or of a part of one.
  mlir::Type stashOf(uint32_t s) const { return pieces[s].stash; }
  /// The type of the activation that stage `s`, which is not the last, sends to
  /// the next stage for one micro-batch.
  mlir::Type activationOf(uint32_t s) { return rangeOf(1).results[s].front(); }

  /// Sets the number of parts of a micro-batch for the backwards that are made
  /// next.
  void setParts(uint32_t parts);

  /// Makes a forward, and the loads of its tokens and labels if it needs them.
  /// `input` is null on stage 0.
  ForwardOp forward(uint32_t p, uint32_t s, uint32_t m, uint32_t count,
                    mlir::Value input, mlir::Value weights);
  /// Makes a backward, or its two halves. Replaces `sum` by the new sum of
  /// weight gradients. Returns the gradient for the previous stage, or null on
  /// stage 0.
  mlir::Value backward(uint32_t p, uint32_t s, uint32_t m, uint32_t k,
                       mlir::Value stash, mlir::Value gradient,
                       mlir::Value weights, mlir::Value &sum);
  mlir::Value copy(uint32_t p, uint32_t s, mlir::Value weights);
  /// Makes the all-reduce that sums `gradients` over all pipelines and copies.
  /// `gradients` has one gradient of stage `s` for each pipeline or, if `tied`
  /// is given, one of stage `s` and one of stage `*tied`. Returns a sum for
  /// each gradient. If there is only one contribution in all, makes no op and
  /// returns `gradients`.
  llvm::SmallVector<mlir::Value>
  reduce(uint32_t s, llvm::ArrayRef<mlir::Value> gradients,
         std::optional<uint32_t> tied = std::nullopt);
  /// Splits a gradient into two pieces at byte `at`.
  mlir::ValueRange splitGradient(uint32_t p, uint32_t s, mlir::Value gradient,
                                 int64_t at);
  /// Joins the pieces of a gradient.
  mlir::Value joinGradient(uint32_t p, uint32_t s, mlir::ValueRange pieces);
  void reduceLosses(llvm::ArrayRef<mlir::Value> losses);
  /// Makes a replica's share of the squared norm of all gradients.
  mlir::Value squaredNorm(uint32_t p, uint32_t s, mlir::Value gradient);
  /// Makes the all-reduce of the squared norms of all replicas. `norms` is by
  /// pipeline, then by stage. Returns a sum for each replica. If there is only
  /// one replica in all copies, makes no op and returns `norms`.
  llvm::SmallVector<mlir::Value> reduceNorms(llvm::ArrayRef<mlir::Value> norms);
  /// Makes the update of a replica. `gradient` is the gradient of micro-batch
  /// `m` or, if `m` is not given, the sum of all micro-batches. `norm` is the
  /// squared norm of all gradients, or null if the update does not clip.
  OptimizerStepOp update(uint32_t p, uint32_t s, mlir::Value weights,
                         mlir::Value state, mlir::Value gradient,
                         mlir::Value norm = {},
                         std::optional<uint32_t> m = std::nullopt);

  /// The location of the ops of a stage: the location of the stage in the
  /// description, under a name with pipeline and stage.
  mlir::Location locationOf(uint32_t p, uint32_t s);

  mlir::OpBuilder builder;
  const mlir::Location loc; ///< of the pipeline

private:
  /// The types for forwards that cover the same number of micro-batches.
  struct RangeTypes {
    mlir::IntegerAttr count; ///< null for one micro-batch
    mlir::Type tokens, labels;
    std::vector<llvm::SmallVector<mlir::Type>>
        results; ///< of the forward of each stage
  };
  /// The types for the backwards of one stage.
  struct PieceTypes {
    mlir::IntegerAttr parts; ///< null for one part
    mlir::Type stash, weightStash, gradient;
  };

  /// Like the public `locationOf`, with the micro-batch in the name too.
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
  /// `pieces` is by stage, `ranges` by the number of micro-batches of a
  /// forward.
  llvm::SmallVector<PieceTypes> pieces;
  std::map<uint32_t, RangeTypes> ranges;
  /// Integer attributes, by value.
  std::vector<mlir::IntegerAttr> numbers;
  /// Locations by replica, and by stage and micro-batch. (A micro-batch belongs
  /// to one pipeline.) They are null until they are needed. A step has few
  /// distinct names, so each location is created only once.
  std::vector<mlir::LocationAttr> replicas, cells;
  std::vector<mlir::StringAttr> microBatchNames;
  /// The number of micro-batches in a section, including micro-batches of the
  /// next step.
  size_t width;
};

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_STEPBUILDER_H
