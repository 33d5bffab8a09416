//===- Layer.h - A layer of a model -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graphs of one kind of layer for one number of samples, and the subgraphs
// that the actions of a stage run. If there is native code for a subgraph and
// the user allows it, the subgraph runs as native code. Otherwise LibTorch's
// operators are called one by one. A Layer has no state that calls change, so
// all layers of one kind share one Layer.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_LAYER_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_LAYER_H

#include "runtime/model/graph/Executable.h"
#include "runtime/model/graph/NativeCode.h"
#include "runtime/model/tensors/DevicePlacement.h"

#include <optional>

namespace chimera::runtime {

std::vector<at::Tensor> constantsOf(const program::LayerKindT &kind,
                                    at::Device device);

class Layer {
public:
  /// `kind` must belong to a package that checkPackage accepts, and that
  /// checkSamples accepts for `samples`. `constants` are constantsOf(kind). All
  /// arguments but `placement` must outlive this object. If `native` is null,
  /// all graphs are interpreted. Throws like the constructors of Executable and
  /// NativeFunction.
  Layer(const program::LayerKindT &kind,
        const std::vector<at::Tensor> &constants, uint32_t samples,
        const DevicePlacement &placement, const NativeCode *native = nullptr);

  /// The tensors that a forward saves for the backward. Each list is indexed
  /// like the layer's inputs, labels, outputs or saved values. A tensor that
  /// the backward does not read is undefined.
  struct ForBackward {
    std::vector<at::Tensor> inputs, labels, outputs, saved;
  };

  /// Whether the backward computes the loss. Then a forward of training can
  /// leave the loss out. Only the last layer of a model has a loss.
  bool computesLossInBackward() const { return lossOfBackward.has_value(); }

  /// Returns the outputs. They are undefined tensors if `wantsOutputs` is
  /// false. Fills `stashed` unless it is null. `parameters` are the parameters
  /// of the layer.
  std::vector<at::Tensor> forward(const Executable::Context &context,
                                  const std::vector<at::Tensor> &parameters,
                                  std::vector<at::Tensor> inputs,
                                  const std::vector<at::Tensor> &labels,
                                  bool wantsOutputs,
                                  ForBackward *stashed) const;

  /// The logits of the next token. Requires a last layer that has logits.
  at::Tensor logits(const Executable::Context &context,
                    const std::vector<at::Tensor> &parameters,
                    const std::vector<at::Tensor> &inputs) const;

  /// The results of a backward or of an input gradient: the gradients of the
  /// inputs, which are undefined for inputs without a gradient, and the loss if
  /// the backward computes it.
  struct BackwardResults {
    std::vector<at::Tensor> gradients;
    at::Tensor loss;
  };

  /// Adds the gradients of the parameters to `sums`.
  BackwardResults backward(Executable::Context context,
                           const std::vector<at::Tensor> &parameters,
                           ForBackward stashed,
                           std::vector<at::Tensor> outputGradients,
                           std::vector<GradientSum *> sums) const;

  /// The two halves of `backward`. `inputGradient` sets `rest` to the tensors
  /// that `weightGradient` needs.
  BackwardResults inputGradient(Executable::Context context,
                                const std::vector<at::Tensor> &parameters,
                                ForBackward stashed,
                                std::vector<at::Tensor> outputGradients,
                                std::vector<at::Tensor> &rest) const;
  void weightGradient(Executable::Context context,
                      const std::vector<at::Tensor> &parameters,
                      std::vector<at::Tensor> rest,
                      std::vector<GradientSum *> sums) const;

private:
  /// A subgraph, and its native code or null. `inputs` and `results` list the
  /// value numbers of the arguments and results of the native code. `usedLater`
  /// lists the arguments that are needed after the call too.
  struct CallableSubgraph {
    Subgraph subgraph;
    std::unique_ptr<NativeFunction> native;
    std::vector<uint32_t> inputs, results, usedLater;
  };
  CallableSubgraph select(const Executable &executable, const char *name,
                          const NativeCode *native,
                          const std::vector<uint32_t> &given,
                          const std::vector<uint32_t> &wanted,
                          const std::vector<uint32_t> &weightGradients) const;
  static void run(const Executable &executable,
                  const CallableSubgraph &callable, Executable::Values &values,
                  const Executable::Context &context);

  Executable::Values
  valuesOfBackward(const std::vector<at::Tensor> &parameters,
                   ForBackward &stashed,
                   std::vector<at::Tensor> &outputGradients) const;
  void bindOwn(const program::GraphT &graph, Executable::Values &values,
               const std::vector<at::Tensor> &parameters) const;
  BackwardResults resultsOf(Executable::Values &values) const;

  const program::LayerGraphsT &graphs;
  uint32_t samples;
  at::Device device;
  const std::vector<at::Tensor> &constants;
  Executable forwards, backwards;
  std::optional<Executable> logitsAlone;
  /// The number of the loss among the values of the backward, if the backward
  /// computes the loss.
  std::optional<uint32_t> lossOfBackward;
  // The subgraphs of a forward: only outputs, only saved values, both.
  CallableSubgraph outputsOnly, savedOnly, outputsAndSaved;
  CallableSubgraph wholeBackward, inputHalf, weightHalf;
  Subgraph logitsSubgraph;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_LAYER_H
