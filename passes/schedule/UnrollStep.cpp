//===- UnrollStep.cpp - A step with a flush, as a graph -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/StepBuilder.h"
#include "passes/schedule/Unroll.h"

using namespace mlir;

namespace chimera {

namespace {

/// Makes a step with a flush.
class Unroller {
public:
  Unroller(StepBuilder &build, const Layout &layout,
           const schedule::Problem &problem, std::optional<program::Tied> tied)
      : build(build), layout(layout), tied(tied), stages(layout.stages.size()),
        clips(problem.clips), losses(problem.microBatches()) {}

  void run() {
    auto step = build.builder.create<StepOp>(build.loc);
    Block &block = step.getBody().emplaceBlock();
    for (size_t p = 0; p < layout.directions.size(); ++p)
      for (uint32_t s = 0; s < stages; ++s) {
        Location loc = build.locationOf(p, s);
        block.addArgument(build.typesOf(s).weights, loc);
        block.addArgument(build.typesOf(s).state, loc);
      }
    build.builder.setInsertionPointToEnd(&block);
    for (uint32_t p = 0; p < layout.directions.size(); ++p)
      unrollPipeline(block, p);
    split();
    reduce();
    build.reduceLosses(losses);
    if (clips)
      reduceNorms();
    SmallVector<Value> results(block.getNumArguments());
    for (uint32_t s : updateOrder())
      for (uint32_t p = 0; p < layout.directions.size(); ++p) {
        unsigned state = stateIndex(p, s);
        OptimizerStepOp update = build.update(
            p, s, block.getArgument(state), block.getArgument(state + 1),
            joined(p, s), gradientOf(p, s).norm);
        results[state] = update.getNewWeights();
        results[state + 1] = update.getNewState();
      }
    build.builder.create<YieldOp>(build.loc, results);
  }

private:
  /// The index of the block argument with the weights of a replica. The next
  /// block argument is the optimizer state of the replica.
  unsigned stateIndex(uint32_t p, uint32_t s) const {
    return 2 * replicaIndex(layout, p, s);
  }

  /// Makes all forwards of a pipeline stage by stage. Then makes its backwards
  /// with the sums of their gradients. In this order, ops of the same worker
  /// are adjacent in memory.
  void unrollPipeline(Block &block, uint32_t p) {
    DirectionOp direction = layout.directions[p];
    ArrayRef<int32_t> batches = direction.getMicroBatches();
    SmallVector<int32_t> counts = direction.forwardCounts();
    uint32_t parts = direction.getBackwardParts();
    build.setParts(parts);
    // The outputs of the previous stage, one for each forward.
    std::vector<Value> inputs(counts.size());
    // The stashes of each stage, by micro-batch and part.
    std::vector<std::vector<Value>> stashes(stages);
    for (uint32_t s = 0; s < stages; ++s) {
      stashes[s].reserve(batches.size() * parts);
      uint32_t first = 0;
      for (auto [i, count] : llvm::enumerate(counts)) {
        int32_t m = batches[first];
        ForwardOp forward = build.forward(p, s, m, count, inputs[i],
                                          block.getArgument(stateIndex(p, s)));
        inputs[i] = forward.getOutputs().front();
        llvm::append_range(stashes[s], forward.getStashes());
        if (s + 1 == stages)
          llvm::copy(forward.getOutputs(), losses.begin() + m);
        first += count;
      }
    }
    // The gradients from the next stage, by micro-batch and part. On the last
    // stage, backwards read losses instead of gradients.
    std::vector<Value> gradients;
    for (int32_t m : batches)
      gradients.insert(gradients.end(), parts, losses[m]);
    SmallVector<Value> sums(stages);
    for (uint32_t s = stages; s-- > 0;)
      for (size_t i = 0; i < gradients.size(); ++i)
        gradients[i] = build.backward(
            p, s, batches[i / parts], i % parts, stashes[s][i], gradients[i],
            block.getArgument(stateIndex(p, s)), sums[s]);
    for (Value sum : sums)
      replicas.push_back({sum, Value(), Value()});
  }

  /// The stages in the order in which their reduced gradients are complete:
  /// later stages first, and the stages with tied parameters after all others.
  SmallVector<uint32_t> updateOrder() const {
    auto order = llvm::to_vector(llvm::reverse(llvm::seq<uint32_t>(0, stages)));
    std::ranges::stable_partition(order,
                                  [&](uint32_t s) { return !tiedPiece(s); });
    return order;
  }

  /// The gradient of a replica. If the stage has tied parameters, `tied` is the
  /// gradient of these parameters and `rest` is the gradient of the others.
  /// Otherwise `rest` is the whole gradient. `norm` is the squared norm of the
  /// gradients of all stages, or null if the updates do not clip.
  struct Gradient {
    Value rest, tied, norm;
  };

  Gradient &gradientOf(uint32_t p, uint32_t s) {
    return replicas[replicaIndex(layout, p, s)];
  }
  /// If stage `s` has tied parameters, its gradient has two pieces, and this is
  /// the index of the tied piece. Otherwise none.
  std::optional<unsigned> tiedPiece(uint32_t s) const {
    return program::indexOfTiedPiece(tied ? &*tied : nullptr, stages, s);
  }

  void split() {
    for (uint32_t p = 0; p < layout.directions.size(); ++p)
      for (uint32_t s = 0; s < stages; ++s) {
        std::optional<unsigned> piece = tiedPiece(s);
        if (!piece)
          continue;
        Gradient &gradient = gradientOf(p, s);
        auto bytes = static_cast<int64_t>(tied->bytes());
        int64_t whole = build.typesOf(s).sum.getBytes();
        ValueRange pieces = build.splitGradient(
            p, s, gradient.rest, *piece == 0 ? bytes : whole - bytes);
        gradient.tied = pieces[*piece];
        gradient.rest = pieces[1 - *piece];
      }
  }

  /// Sums the gradients over all replicas. Later stages come first, because
  /// their gradients are complete first.
  void reduce() {
    SmallVector<Value *> contributions;
    for (uint32_t s = stages; s-- > 0;) {
      for (uint32_t p = 0; p < layout.directions.size(); ++p)
        contributions.push_back(&gradientOf(p, s).rest);
      reduce(s, contributions);
      contributions.clear();
    }
    if (!tied)
      return;
    for (uint32_t p = 0; p < layout.directions.size(); ++p)
      for (uint32_t s : {0u, stages - 1})
        contributions.push_back(&gradientOf(p, s).tied);
    reduce(0, contributions, stages - 1);
  }

  void reduce(uint32_t s, ArrayRef<Value *> contributions,
              std::optional<uint32_t> tiedStage = std::nullopt) {
    SmallVector<Value> values;
    for (Value *contribution : contributions)
      values.push_back(*contribution);
    for (auto [contribution, sum] :
         llvm::zip(contributions, build.reduce(s, values, tiedStage)))
      *contribution = sum;
  }

  /// Makes the squared norm of each replica's gradient, and sums them over all
  /// replicas.
  void reduceNorms() {
    SmallVector<Value> norms;
    for (uint32_t p = 0; p < layout.directions.size(); ++p)
      for (uint32_t s = 0; s < stages; ++s)
        norms.push_back(build.squaredNorm(p, s, joined(p, s)));
    for (auto [replica, sum] : llvm::zip(replicas, build.reduceNorms(norms)))
      replica.norm = sum;
  }

  /// The whole reduced gradient of a replica. At the first call, joins its
  /// pieces.
  Value joined(uint32_t p, uint32_t s) {
    Gradient &gradient = gradientOf(p, s);
    std::optional<unsigned> piece = tiedPiece(s);
    if (!piece || !gradient.tied)
      return gradient.rest;
    gradient.rest =
        *piece == 0 ? build.joinGradient(p, s, {gradient.tied, gradient.rest})
                    : build.joinGradient(p, s, {gradient.rest, gradient.tied});
    gradient.tied = {};
    return gradient.rest;
  }

  StepBuilder &build;
  const Layout &layout;
  std::optional<program::Tied> tied;
  uint32_t stages;
  bool clips;
  std::vector<Value> losses;      ///< by micro-batch
  std::vector<Gradient> replicas; ///< in the order of the block arguments
};

} // namespace

void unrollStep(StepBuilder &build, const Layout &layout,
                const schedule::Problem &problem,
                std::optional<program::Tied> tied) {
  Unroller(build, layout, problem, tied).run();
}

} // namespace chimera
