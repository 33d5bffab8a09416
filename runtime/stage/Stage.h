//===- Stage.h - What computes on one stage replica -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter moves bytes and calls stages; a stage gives the bytes their
// meaning. Implementations: torch/ (transformer layers), SyntheticStage (given
// durations), ExactStage (integer arithmetic, for proofs by running).
//
// All memory is the caller's but for what a Stash holds. A call on one stage
// object is made by one thread at a time. Failures are thrown as
// std::exception.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_STAGE_H
#define CHIMERA_RUNTIME_STAGE_STAGE_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace chimera::runtime {

/// Which micro-batch, or which of its equal parts, an action works on. Random
/// numbers may depend on these and on the seed and the layer, on nothing else:
/// not on worker, pipeline or schedule. A part has the numbers that its samples
/// have in the whole micro-batch.
struct MicroBatch {
  uint64_t step;  ///< training step, from 0
  uint64_t index; ///< global number: copy * N + micro-batch
  uint32_t part = 0;
  uint32_t parts = 1;
};

/// What a forward keeps for its backward. Destroying it frees it.
class Stash {
public:
  virtual ~Stash() = default;
};

/// What a forward is to make: where its stash will be recomputed, the output
/// alone, and then the stash alone. Where a model is evaluated, the output
/// alone, and as it is without dropout.
enum class Wanted { Both, Output, Stash, Evaluation };

/// Whether a forward makes a stash.
inline bool keepsStash(Wanted wanted) {
  return wanted == Wanted::Both || wanted == Wanted::Stash;
}

/// Whether a weight gradient is added to what its memory holds, or begins the
/// sum there: is written over whatever that memory held.
enum class Sum { Continue, Begin };

/// The bytes of a flag: one int32_t, 0 or 1.
inline constexpr uint64_t kFlagBytes = 4;

class Stage {
public:
  virtual ~Stage() = default;

  /// The element type of weights and weight gradients.
  virtual ElementType weightType() const = 0;
  /// The element type of a loss; a loss buffer holds one element.
  virtual ElementType lossType() const = 0;

  /// Fills weights and optimizer state as they are before step 0: a function
  /// of the seed and the layers alone, so replicas are bit-identical.
  virtual void initialize(Bytes weights, Bytes optimizerState) = 0;

  /// `input` holds tokens on the first stage, else the activation; `labels` is
  /// empty but on the last stage; `output` receives the activation, or on the
  /// last stage the loss of the micro-batch, of which a part gives its share:
  /// the parts' add up to it. Where only one of both is wanted, `output`
  /// is empty or the returned stash null.
  virtual std::unique_ptr<Stash> forward(MicroBatch microBatch,
                                         ConstBytes input, ConstBytes labels,
                                         ConstBytes weights, Bytes output,
                                         Wanted wanted = Wanted::Both) = 0;

  /// Adds the gradient of the micro-batch's loss, or of a part's share of it,
  /// to `weightGradient`, or begins that sum, and writes `inputGradient`, empty
  /// on the first stage. `outputGradient` is the loss of the whole micro-batch
  /// on the last stage (whose own gradient is one). Consumes the stash.
  virtual void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                        ConstBytes outputGradient, ConstBytes weights,
                        Bytes weightGradient, Bytes inputGradient,
                        Sum sum = Sum::Continue) = 0;

  /// The two halves of `backward`: the first writes the input gradient and
  /// returns what the second needs for the weight gradient.
  virtual std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                               std::unique_ptr<Stash> stash,
                                               ConstBytes outputGradient,
                                               ConstBytes weights,
                                               Bytes inputGradient) = 0;
  virtual void weightGradient(MicroBatch microBatch,
                              std::unique_ptr<Stash> stash, ConstBytes weights,
                              Bytes weightGradient,
                              Sum sum = Sum::Continue) = 0;

  /// Updates weights and state in place with `scale` times `gradientSum`.
  /// `halted` is empty or a flag that is 0 before the first step. A sum with an
  /// element that is not finite sets it. While it is set, updates change
  /// nothing: the weights stay as they were before that sum.
  virtual void optimizerStep(uint64_t step, double scale,
                             ConstBytes gradientSum, Bytes weights,
                             Bytes optimizerState, Bytes halted = {}) = 0;
};

/// What a `load` instruction reads.
class DataSource {
public:
  virtual ~DataSource() = default;
  /// Fills `output` with the tokens or labels (`kind`) of a micro-batch or of a
  /// part of one. A function of its arguments and the seed alone. Safe to call
  /// from any rank's thread.
  virtual void load(program::ValueKind kind, MicroBatch microBatch,
                    Bytes output) = 0;
  /// How much the loss of a whole micro-batch weighs: 1 where it is a mean.
  /// Where it is a sum, what counts in its labels. The loss of a step is the
  /// sum of all its micro-batches' over the sum of their weights. Likewise a
  /// function of its arguments and the seed, and safe to call from any thread,
  /// so each rank knows the weights of all without asking.
  virtual double weight(MicroBatch) { return 1; }
};

/// Makes the computation of stage `stage` of a program, one object for each
/// replica. Throws where the kind of stage cannot run the program.
using StageFactory =
    std::function<std::unique_ptr<Stage>(const program::ProgramT &, uint32_t)>;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_STAGE_H
