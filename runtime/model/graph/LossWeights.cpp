//===- LossWeights.cpp - Loss weights of micro-batches --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Executable.h"
#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/graph/Layer.h"
#include "runtime/model/graph/Packing.h"
#include "runtime/model/tensors/Tensors.h"
#include "runtime/model/weights/StageWeights.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Layers.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

/// The graph that computes the loss weight of a micro-batch from its labels.
class WeightGraph {
public:
  /// Requires that the program has a model whose last layer has a graph that
  /// computes the weight of the loss.
  explicit WeightGraph(const program::ProgramT &program)
      : graphs(
            graphsOf(*program.model, program::layerCount(*program.model) - 1)),
        samples(program.micro_batch_size),
        executable(*graphs.weight, samples, at::kCPU) {
    constants =
        constantsOf(program::kindOf(*program.model,
                                    program::layerCount(*program.model) - 1),
                    at::kCPU);
    std::vector<uint32_t> given;
    for (const program::Port &port : graphs.weight->inputs)
      given.push_back(port.value());
    results.resize(graphs.weight->outputs.size());
    for (const program::Port &port : graphs.weight->outputs)
      results[port.index()] = port.value();
    subgraph = executable.selectSubgraph(given, results, /*adds=*/false);
  }

  /// The weight of each term of the loss in the micro-batch with these labels.
  std::vector<double> weigh(ConstBytes labels) const {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    expectBytes("labels", labels.size(),
                program::bytesOf(graphs.labels, samples));
    // Limit the size of tensors. In a correct graph, tensors are about as large
    // as the labels.
    const TensorLimit limit((uint64_t{1} << 24) + 64 * labels.size());
    const std::vector<Tensor> tensors =
        unpack(labels, graphs.labels, samples, {});
    Executable::Values values = executable.makeValues();
    for (const program::Port &port : graphs.weight->inputs)
      values[port.value()] = port.role() == program::Role::Constant
                                 ? constants[port.index()]
                                 : tensors[port.index()];
    executable.run(subgraph, values, {});
    std::vector<double> weights;
    for (uint32_t result : results) {
      const Tensor &weight = values[result];
      if (weight.numel() != 1)
        throw std::runtime_error(
            "expected one number as the weight of the labels, got " +
            std::to_string(weight.numel()));
      weights.push_back(weight.to(at::kDouble).item<double>());
    }
    return weights;
  }

private:
  const program::LayerGraphsT &graphs;
  uint32_t samples; ///< in a micro-batch
  Executable executable;
  std::vector<Tensor> constants;
  Subgraph subgraph;
  std::vector<uint32_t> results; ///< value numbers, by term
};

/// A data source that adds loss weights to another one. Ranks that are threads
/// share one object, so the weights of each micro-batch are computed only once.
/// If they are known, no thread waits while another one computes weights.
class LossWeightedData : public DataSource {
public:
  LossWeightedData(const program::ProgramT &program,
                   std::unique_ptr<DataSource> data, uint64_t windowSteps)
      : inner(std::move(data)), graph(program),
        microBatches(uint64_t{program.micro_batches} * program.data_parallel),
        windowSteps(windowSteps), terms(program::lossTerms(*program.model)),
        lossType(
            graphsOf(*program.model, program::layerCount(*program.model) - 1)
                .outputs[0]
                ->type),
        sampleBytes(static_cast<size_t>(
            program::sampleBytes(program::labelFields(*program.model)))),
        labelBytes(static_cast<size_t>(
            program::labelBytes(*program.model, program.micro_batch_size))) {}

  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    inner->load(kind, microBatch, output);
    if (terms < 2 || kind != program::ValueKind::Labels)
      return;
    // The scales are the last field of the labels.
    const size_t rows = output.size() / sampleBytes;
    const auto bytes = static_cast<size_t>(program::bytesOf(lossType));
    std::byte *target = output.data() + output.size() - rows * terms * bytes;
    const std::vector<double> all = scalesOf(microBatch.step);
    for (size_t row = 0; row < rows; ++row)
      for (double scale : all) {
        const auto rounded = static_cast<float>(scale);
        if (lossType == program::TensorType::Float64)
          std::memcpy(target, &scale, bytes);
        else
          std::memcpy(target, &rounded, bytes);
        target += bytes;
      }
  }

  bool weighsLosses() const override { return true; }

  double lossWeight(MicroBatch microBatch) override {
    if (terms > 1)
      return std::ranges::any_of(scalesOf(microBatch.step),
                                 [](double scale) { return scale > 0; })
                 ? 1
                 : 0;
    return weightsOf(microBatch.step, microBatch.index)[0];
  }

private:
  /// The scale of each term of the loss in `step`: the number of micro-batches
  /// divided by the term's total weight, both in the `windowSteps` steps around
  /// `step` (see withLossWeights). A term with total weight 0 has the scale 0.
  /// If each term is multiplied by its scale, the mean loss of these
  /// micro-batches is the sum of the terms' means.
  std::vector<double> scalesOf(uint64_t step) {
    const uint64_t first = step / windowSteps * windowSteps;
    {
      std::lock_guard lock(mutex);
      if (const auto found = known.find(first); found != known.end())
        return found->second;
    }
    std::vector<double> totals(terms);
    for (uint64_t each = first; each < first + windowSteps; ++each)
      for (uint64_t index = 0; index < microBatches; ++index) {
        const std::vector<double> own = weightsOf(each, index);
        for (size_t term = 0; term < terms; ++term)
          totals[term] += own[term];
      }
    for (double &total : totals) {
      if (!(total >= 0))
        throw std::runtime_error("expected a weight of at least 0 for the "
                                 "labels of a loss term, got " +
                                 std::to_string(total));
      total = total > 0
                  ? static_cast<double>(microBatches * windowSteps) / total
                  : 0;
    }
    std::lock_guard lock(mutex);
    forgetBefore(known, first);
    return known[first] = std::move(totals);
  }

  std::vector<double> weightsOf(uint64_t step, uint64_t index) {
    if (std::optional<std::vector<double>> weights = find(step, index))
      return *weights;
    std::lock_guard computing(computeMutex);
    // Another thread may have computed it meanwhile.
    if (std::optional<std::vector<double>> weights = find(step, index))
      return *weights;
    std::vector<std::byte> labels(labelBytes);
    inner->load(program::ValueKind::Labels, {.step = step, .index = index},
                labels);
    std::vector<double> weights = graph.weigh(labels);
    std::lock_guard lock(mutex);
    forgetBefore(weighed, step);
    return weighed[step][index] = std::move(weights);
  }

  /// The weights of a micro-batch, if they are known.
  std::optional<std::vector<double>> find(uint64_t step, uint64_t index) {
    std::lock_guard lock(mutex);
    const auto ofStep = weighed.find(step);
    if (ofStep == weighed.end())
      return std::nullopt;
    const auto found = ofStep->second.find(index);
    return found == ofStep->second.end() ? std::nullopt
                                         : std::optional(found->second);
  }

  /// Deletes the entries of steps that are more than 64 windows before `step`.
  /// Ranks are never more than a few steps apart, and samples are read at most
  /// two steps ahead, so no rank needs these entries. Requires the mutex.
  template <typename T>
  void forgetBefore(std::map<uint64_t, T> &bySteps, uint64_t step) const {
    const uint64_t kept = 64 * windowSteps;
    while (!bySteps.empty() && bySteps.begin()->first + kept < step)
      bySteps.erase(bySteps.begin());
  }

  std::unique_ptr<DataSource> inner;
  WeightGraph graph;
  const uint64_t microBatches; ///< in a step, of all copies
  const uint64_t windowSteps;
  const uint32_t terms;
  const program::TensorType lossType;
  const size_t sampleBytes; ///< bytes of labels per sample
  const size_t labelBytes;  ///< bytes of labels per micro-batch
  std::mutex computeMutex;  ///< held while a weight is computed
  std::mutex mutex;         ///< guards all members below
  /// The weight of each term, by step and micro-batch.
  std::map<uint64_t, std::map<uint64_t, std::vector<double>>> weighed;
  /// The scales that scalesOf has computed, by the first of their `windowSteps`
  /// steps.
  std::map<uint64_t, std::vector<double>> known;
};

} // namespace

std::unique_ptr<DataSource>
chimera::runtime::withLossWeights(const program::ProgramT &program,
                                  std::unique_ptr<DataSource> data,
                                  uint64_t windowSteps) {
  if (program::lossTerms(*program.model) == 0)
    return data;
  return std::make_unique<LossWeightedData>(program, std::move(data),
                                            windowSteps);
}
