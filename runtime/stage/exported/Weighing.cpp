//===- Weighing.cpp - What the labels of micro-batches weigh --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Layout.h"
#include "runtime/stage/exported/Executable.h"
#include "runtime/stage/exported/ExportedStage.h"
#include "runtime/stage/exported/Packing.h"
#include "runtime/stage/torch/StageWeights.h"
#include "runtime/stage/torch/Tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <mutex>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

/// The graph that weighs the labels of a micro-batch.
class Scales {
public:
  /// Requires a package that is weighed, and has graphs for a micro-batch.
  explicit Scales(const program::ProgramT &program)
      : graphs(*graphsOf(*program.model->package,
                         program::layerCount(*program.model) - 1,
                         program.micro_batch_size)),
        executable(*graphs.weight, at::kCPU) {
    std::vector<uint32_t> given;
    for (const program::Port &port : graphs.weight->inputs)
      given.push_back(port.value());
    result = graphs.weight->outputs[0].value();
    selection = executable.select(given, {result}, /*adds=*/false);
  }

  double weigh(ConstBytes labels) const {
    at::NoGradGuard noGraph;
    at::AutoDispatchBelowADInplaceOrView kernelsAlone;
    expectBytes("labels", labels.size(), program::bytesOf(graphs.labels));
    // What a weight is made of is about as large as the labels.
    const TensorLimit limit((uint64_t{1} << 24) + 64 * labels.size());
    const std::vector<Tensor> tensors = unpack(labels, graphs.labels, {});
    Executable::Values values = executable.makeValues();
    for (const program::Port &port : graphs.weight->inputs)
      values[port.value()] = tensors[port.index()];
    executable.run(selection, values, {});
    const Tensor &weight = values[result];
    if (weight.numel() != 1)
      throw std::runtime_error(
          "expected one number as what labels weigh, got " +
          std::to_string(weight.numel()));
    return weight.to(at::kDouble).item<double>();
  }

private:
  const program::LayerGraphsT &graphs;
  Executable executable;
  Selection selection;
  uint32_t result;
};

/// Ranks that are threads share it: each micro-batch of a step is weighed once.
class WeighedData : public DataSource {
public:
  WeighedData(const program::ProgramT &program,
              std::unique_ptr<DataSource> data)
      : inner(std::move(data)), scales(program),
        labels(static_cast<size_t>(
            program::labelBytes(*program.model, program.micro_batch_size))) {}

  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    inner->load(kind, microBatch, output);
  }

  double weight(MicroBatch microBatch) override {
    std::lock_guard lock(mutex);
    const std::pair key(microBatch.step, microBatch.index);
    auto found = known.find(key);
    if (found != known.end())
      return found->second;
    // No rank is further behind the others than a few steps.
    constexpr uint64_t kSteps = 64;
    while (!known.empty() && known.begin()->first.first + kSteps < key.first)
      known.erase(known.begin());
    inner->load(program::ValueKind::Labels, microBatch, labels);
    return known[key] = scales.weigh(labels);
  }

private:
  std::unique_ptr<DataSource> inner;
  Scales scales;
  std::mutex mutex;
  std::vector<std::byte> labels;
  std::map<std::pair<uint64_t, uint64_t>, double> known;
};

} // namespace

double chimera::runtime::weightOf(const program::ProgramT &program,
                                  ConstBytes labels) {
  return isWeighed(*program.model->package) ? Scales(program).weigh(labels) : 1;
}

std::unique_ptr<DataSource>
chimera::runtime::withWeights(const program::ProgramT &program,
                              std::unique_ptr<DataSource> data) {
  if (!isWeighed(*program.model->package))
    return data;
  return std::make_unique<WeighedData>(program, std::move(data));
}
