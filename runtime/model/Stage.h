//===- Stage.h - The interface of a stage's computation ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between the interpreter and the computation of one replica of a
// stage. The interpreter moves bytes and calls stages. A stage knows what the
// bytes mean. Implementations: graph/ (the layers of any model), SyntheticStage
// (sleeps for given durations), and ExactStage (integer arithmetic, to prove a
// schedule by running it).
//
// The caller owns all memory except a Stash. At any time, at most one thread
// calls a stage object. Failures are thrown as std::exception.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_STAGE_H
#define CHIMERA_RUNTIME_MODEL_STAGE_H

#include "runtime/data/DataSource.h"
#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace chimera::runtime {

/// The values that a forward saves for its backward, or that an input gradient
/// saves for its weight gradient. The destructor frees the values.
class Stash {
public:
  virtual ~Stash() = default;
};

/// The results of a forward. `Both`: output and stash. If the stash is
/// recomputed, the first forward makes only the `Output`, and the recompute
/// makes only the `Stash`. `Evaluation`: only the output, without dropout.
/// `Accuracy`: like `Evaluation`, but the output of the last stage is the
/// number of labels that the model predicts right (Predictions.h), in place of
/// a loss.
enum class ForwardMode { Both, Output, Stash, Evaluation, Accuracy };

/// Whether a forward makes a stash.
inline bool makesStash(ForwardMode mode) {
  return mode == ForwardMode::Both || mode == ForwardMode::Stash;
}

/// Whether a forward is part of training, and so has dropout.
inline bool trains(ForwardMode mode) {
  return mode != ForwardMode::Evaluation && mode != ForwardMode::Accuracy;
}

/// How a backward writes its weight gradient to the buffer. `Add`: adds the
/// gradient to the contents (beta = 1 in GEMM). `Overwrite`: replaces the
/// contents (beta = 0).
enum class WgradMode { Add, Overwrite };

/// The size in bytes of a flag, which is one int32_t with the value 0 or 1.
inline constexpr uint64_t kFlagBytes = 4;

/// The numbers of one update of a stage's weights.
struct Update {
  uint64_t number;     ///< among all updates of these weights, from 0
  double learningRate; ///< of the update's step (LearningRate.h)
  double scale;        ///< the gradient is `scale` times the gradient sum
  /// The largest norm of the gradients of all stages together (Clipping.h). 0
  /// if gradients are not clipped.
  double clipNorm = 0;
  /// If gradients are clipped: the number of updates that are left out because
  /// their norm is not finite, before such a norm halts the updates.
  uint64_t skipNonFinite = 0;
};

/// Whether the flag of `optimizerStep` says that updates have halted. The other
/// bits of a flag count the updates that were left out (Update::skipNonFinite).
constexpr bool hasHalted(int32_t flag) { return flag & 1; }

/// The flag after an update whose gradients are not finite. Requires a flag
/// that has not halted.
inline int32_t flagAfterNonFinite(int32_t flag, uint64_t skipNonFinite) {
  return static_cast<uint64_t>(flag) / 2 < skipNonFinite ? flag + 2 : flag + 1;
}

class Stage {
public:
  virtual ~Stage() = default;

  /// The element type of weights and weight gradients.
  virtual ElementType weightType() const = 0;
  /// The element type of a loss; a loss buffer holds one element.
  virtual ElementType lossType() const = 0;

  /// Whether the loss is a sum, so that data must have the weights of losses
  /// (DataSource::lossWeight).
  virtual bool needsLossWeights() const { return false; }

  /// Whether the stage may find errors that it cannot throw, because it would
  /// have to wait for its device.
  virtual bool needsErrorFlag() const { return false; }
  /// Gives the stage memory of the device (kFlagBytes) that is 0. If the stage
  /// finds such an error, it writes another value there. The memory must
  /// outlive the stage.
  virtual void setErrorFlag(Bytes) {}
  /// The message of the error for a value of the flag that is not 0.
  virtual std::string errorMessage(int32_t) const { return ""; }

  /// Gives the stage memory of the device (uint64_t). Before actions of another
  /// step, the caller writes the number of that step to the memory. Random
  /// numbers then depend on this number and not on MicroBatch::step. So an
  /// action puts the same operations on the queue in each step. The memory must
  /// outlive the stage.
  virtual void setStepMemory(ConstBytes) {}

  /// Sets weights and optimizer state to their values before step 0. The values
  /// depend only on the seed and the layers, so all replicas are bit-identical.
  virtual void initialize(Bytes weights, Bytes optimizerState) = 0;

  /// `input` holds the tokens on the first stage and the activation on all
  /// others. `labels` is empty except on the last stage. `output` receives the
  /// activation or, on the last stage, the loss of the micro-batch. For a part
  /// of a micro-batch, `output` receives the part's share of that loss: the
  /// shares of all parts add up to the loss. A forward of training may write 0
  /// as the loss, and leave the loss to the backward. If `mode` is `Stash`,
  /// `output` is empty. If `mode` makes no stash, returns null. `Accuracy`
  /// requires that the model has a predicted field.
  virtual std::unique_ptr<Stash>
  forward(MicroBatch microBatch, ConstBytes input, ConstBytes labels,
          ConstBytes weights, Bytes output,
          ForwardMode mode = ForwardMode::Both) = 0;

  /// Computes the gradient of the loss with respect to the weights. Adds this
  /// gradient to `weightGradient` or, if `mode` is `Overwrite`, overwrites
  /// `weightGradient`. For a part of a micro-batch, the loss is the part's
  /// share of the loss. Writes `inputGradient`, which is empty on the first
  /// stage. On the last stage, `outputGradient` holds the loss of the whole
  /// micro-batch instead of a gradient: the gradient of the loss is one. If the
  /// forward left the loss out, the backward adds it to `outputGradient`.
  /// Consumes the stash.
  virtual void backward(MicroBatch microBatch, std::unique_ptr<Stash> stash,
                        Bytes outputGradient, ConstBytes weights,
                        Bytes weightGradient, Bytes inputGradient,
                        WgradMode mode = WgradMode::Add) = 0;

  /// The two halves of `backward`. `inputGradient` writes the input gradient,
  /// completes the loss, and returns the values that `weightGradient` needs.
  virtual std::unique_ptr<Stash> inputGradient(MicroBatch microBatch,
                                               std::unique_ptr<Stash> stash,
                                               Bytes outputGradient,
                                               ConstBytes weights,
                                               Bytes inputGradient) = 0;
  virtual void weightGradient(MicroBatch microBatch,
                              std::unique_ptr<Stash> stash, ConstBytes weights,
                              Bytes weightGradient,
                              WgradMode mode = WgradMode::Add) = 0;

  /// Writes the sum of the squares of the elements of `gradientSum`, which may
  /// be a part of the stage's gradient sum, to `squaredNorm`, one element of
  /// `lossType`.
  virtual void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) = 0;

  /// Updates weights and optimizer state in place. `halted` is empty, or a flag
  /// that is 0 before the first step. If an element of the sum is not finite,
  /// the update sets the flag. While the flag is set, updates change nothing.
  /// So the weights keep the values that they had before the update that set
  /// the flag.
  ///
  /// If gradients are clipped, `squaredNorm` has the sum of the squared norms
  /// of the gradient sums of all stages, and all stages decide by it whether a
  /// gradient is finite. If it is not, the update changes nothing.
  virtual void optimizerStep(const Update &update, ConstBytes gradientSum,
                             Bytes weights, Bytes optimizerState,
                             Bytes halted = {},
                             ConstBytes squaredNorm = {}) = 0;
};

/// A function that makes the computation of one stage. Its arguments are the
/// program and the number of the stage. It is called once for each replica of
/// the stage. Throws if this kind of stage cannot run the program.
using StageFactory =
    std::function<std::unique_ptr<Stage>(const program::ProgramT &, uint32_t)>;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_STAGE_H
