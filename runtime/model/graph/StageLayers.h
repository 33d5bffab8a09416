//===- StageLayers.h - The layers of a stage as graphs ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contiguous range of a package's layers, for every number of samples, and
// the parameters of these layers.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_STAGELAYERS_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_STAGELAYERS_H

#include "runtime/model/graph/Layer.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/model/weights/StageWeights.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace chimera::runtime {

class StageLayers {
public:
  /// Layers [first, first + count) of the program's model, or all layers if
  /// `count` is 0. The program and `native`, which may be null, must outlive
  /// this object. Throws std::invalid_argument if the program has no model, or
  /// if checkPackage or checkTypesAndSizes rejects it. Throws like
  /// StageWeights and Layer.
  StageLayers(const program::ProgramT &program, uint32_t first, uint32_t count,
              const DevicePlacement &placement, const NativeCode *native);

  const StageWeights &weights() const { return parameters; }
  uint32_t size() const { return count; }
  bool hasFirst() const { return first == 0; }
  bool hasLast() const { return first + count == package.layers.size(); }

  /// The graphs of the first layer and of the last layer of the range.
  const program::LayerGraphsT &begin() const {
    return graphsOf(package, first);
  }
  const program::LayerGraphsT &end() const {
    return graphsOf(package, first + count - 1);
  }

  /// The layers for `samples` samples. Makes them if they are new.
  const std::vector<const Layer *> &forSamples(uint32_t samples);

  /// The context of the calls of layer `k` of the range. If `dropped` is a
  /// micro-batch, its dropout masks are applied; otherwise nothing is dropped.
  Executable::Context contextOf(uint32_t k,
                                std::optional<MicroBatch> dropped) const;

  /// The parameters of layer `k`, or their gradient sums. `all` has those of
  /// the whole range, in the order of weights().slots().
  std::vector<at::Tensor>
  parametersOf(uint32_t k, const std::vector<at::Tensor> &all) const;
  std::vector<GradientSum *> sumsOf(uint32_t k,
                                    std::vector<GradientSum> &all) const;

  /// Calls `action` with a limit on the size of tensors: kWorkspace plus
  /// kIntermediates times the largest size that the package states. So the
  /// proof of the program (runtime/proof) knows this limit. If `action` throws,
  /// names layer `k` of the range in the error message.
  template <typename Action>
  std::invoke_result_t<Action> run(uint32_t k, Action action) const {
    const TensorLimit limit(mostBytes);
    try {
      return action();
    } catch (const std::exception &error) {
      throw std::runtime_error(nameOf(k) + ": " + error.what());
    }
  }

  /// Sets CallContext::step of all later calls.
  void setStep(const uint64_t *memory) { step = memory; }
  /// Sets CallContext::wrongIndex of all later calls.
  void setWrongIndex(at::Tensor flag) { wrongIndex = std::move(flag); }
  /// The error message for a call that has set that tensor to `flag`.
  std::string wrongIndexMessage(int32_t flag) const;

private:
  std::string nameOf(uint32_t k) const;

  const program::PackageT &package; ///< of the program
  uint64_t seed;
  uint32_t first, count;
  DevicePlacement placement;
  const NativeCode *native;
  StageWeights parameters;
  uint64_t mostBytes = 0; ///< the maximum size of a tensor
  at::Tensor wrongIndex;
  const uint64_t *step = nullptr;
  /// Indices of parameters in weights().slots(), by layer and parameter number.
  std::vector<std::vector<uint32_t>> slotsOf;
  std::map<const program::LayerKindT *, std::vector<at::Tensor>> constants;
  /// By kind and number of samples: layers of the same kind share one Layer.
  std::map<std::pair<const program::LayerKindT *, uint32_t>,
           std::unique_ptr<Layer>>
      made;
  std::map<uint32_t, std::vector<const Layer *>> bySamples;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_STAGELAYERS_H
