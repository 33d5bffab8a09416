//===- Layer.h - One layer of a PyTorch model -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graphs of a kind of layer for a number of samples, and what of them the
// actions of a stage run: natively compiled code where there is some and the
// user allows it, else LibTorch's operators one by one. It has no state of a
// run: all layers of the kind share it.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_LAYER_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_LAYER_H

#include "runtime/stage/exported/Executable.h"
#include "runtime/stage/exported/NativeCode.h"
#include "runtime/stage/torch/Place.h"

#include <optional>

namespace chimera::runtime {

at::Tensor tensorOf(const program::ConstantT &constant, at::Device device);

class Layer {
public:
  /// Both must be of a package that checkPackage accepts. They must outlive
  /// this, and so must `native`, null where all is interpreted. Throws like
  /// Executable and NativeFunction.
  Layer(const program::LayerKindT &kind, const program::LayerGraphsT &graphs,
        const Place &place, const NativeCode *native = nullptr);

  const program::LayerGraphsT &definition() const { return graphs; }

  /// What a forward keeps for the backward: tensors by their numbers, undefined
  /// where the backward does not take them.
  struct ForBackward {
    std::vector<at::Tensor> inputs, labels, outputs, saved;
  };

  /// The outputs, none where they are not wanted. Fills `stashed` unless it is
  /// null. `parameters` are those of the layer.
  std::vector<at::Tensor> forward(const Executable::Context &context,
                                  const std::vector<at::Tensor> &parameters,
                                  std::vector<at::Tensor> inputs,
                                  const std::vector<at::Tensor> &labels,
                                  bool wantsOutputs,
                                  ForBackward *stashed) const;

  /// The logits of what comes next. Requires that the last layer has some.
  at::Tensor logits(const Executable::Context &context,
                    const std::vector<at::Tensor> &parameters,
                    const std::vector<at::Tensor> &inputs) const;

  /// The gradients of the inputs, undefined of one that has none. Adds those of
  /// the parameters to `sums`.
  std::vector<at::Tensor> backward(Executable::Context context,
                                   const std::vector<at::Tensor> &parameters,
                                   ForBackward stashed,
                                   std::vector<at::Tensor> outputGradients,
                                   std::vector<GradientSum *> sums) const;

  /// The halves of `backward`. The first one gives in `rest` what the second
  /// takes.
  std::vector<at::Tensor>
  inputGradient(Executable::Context context,
                const std::vector<at::Tensor> &parameters, ForBackward stashed,
                std::vector<at::Tensor> outputGradients,
                std::vector<at::Tensor> &rest) const;
  void weightGradient(Executable::Context context,
                      const std::vector<at::Tensor> &parameters,
                      std::vector<at::Tensor> rest,
                      std::vector<GradientSum *> sums) const;

private:
  /// A selection, and the native code of it or null. Of that the arguments and
  /// the results, by their numbers, and which arguments are used later.
  struct Selected {
    Selection selection;
    std::unique_ptr<NativeFunction> native;
    std::vector<uint32_t> inputs, results, usedLater;
  };
  Selected select(const Executable &executable, const char *name,
                  const NativeCode *native, const std::vector<uint32_t> &given,
                  const std::vector<uint32_t> &wanted,
                  const std::vector<uint32_t> &weightGradients) const;
  static void run(const Executable &executable, const Selected &selected,
                  Executable::Values &values,
                  const Executable::Context &context);

  Executable::Values
  valuesOfBackward(const std::vector<at::Tensor> &parameters,
                   ForBackward &stashed,
                   std::vector<at::Tensor> &outputGradients) const;
  void bindOwn(const program::GraphT &graph, Executable::Values &values,
               const std::vector<at::Tensor> &parameters) const;
  std::vector<at::Tensor> inputGradientsOf(Executable::Values &values) const;

  const program::LayerGraphsT &graphs;
  at::Device device;
  std::vector<at::Tensor> constants;
  Executable forwards, backwards;
  std::optional<Executable> logitsAlone;
  // What a forward runs for the outputs alone, what is saved alone, and both.
  Selected outputsAlone, savedAlone, outputsAndSaved;
  Selected wholeBackward, inputHalf, weightHalf;
  Selection selectedLogits;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_LAYER_H
