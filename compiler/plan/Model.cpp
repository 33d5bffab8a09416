//===- Model.cpp - What the layers of a model take ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Model.h"

#include "runtime/program/Saturated.h"

#include <algorithm>

namespace chimera::plan {

Model::Model(std::shared_ptr<const program::ModelT> model, program::Types types,
             std::string optimizer)
    : model(std::move(model)), types(types), optimizer(std::move(optimizer)) {}

Model::Model(std::vector<BareLayer> layers, program::Types types,
             std::string optimizer)
    : bare(std::move(layers)), types(types), optimizer(std::move(optimizer)) {}

int32_t Model::layerCount() const {
  return static_cast<int32_t>(model ? program::layerCount(*model)
                                    : bare.size());
}

int64_t Model::tokens() const {
  return model && !model->package ? model->context : 0;
}

/// The most that costs of a model may add up to: sums of them stay below 2^63.
static constexpr int64_t kLargest = int64_t{1} << 60;

static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

std::string Model::check(int64_t microBatchSize, int64_t parts,
                         const Machine *machine) const {
  if (microBatchSize < 1 || microBatchSize > UINT32_MAX)
    return "expected a micro-batch of at least one sample and less than 2^32, "
           "got " +
           std::to_string(microBatchSize);
  if (model)
    if (std::string problem = program::checkUse(
            *model, types, static_cast<uint32_t>(microBatchSize),
            static_cast<uint32_t>(parts));
        !problem.empty())
      return problem;
  int64_t total = 0, largest = 0, parameters = 0;
  for (const LayerCost &layer : table(microBatchSize, machine).layers) {
    total = program::saturatedSum({total, layer.forward, layer.inputGradient,
                                   layer.weightGradient, layer.stash,
                                   layer.weightStash});
    largest = std::max(largest, layer.boundary);
    parameters = program::saturatedSum({parameters, layer.parameters});
  }
  if (total > kLargest || largest > kLargest || parameters > kLargest / 16)
    return "expected a model whose operations, bytes and nanoseconds for a "
           "micro-batch are below 2^60";
  return {};
}

LayerTable Model::table(int64_t microBatchSize, const Machine *machine) const {
  LayerTable table;
  table.types = types;
  table.optimizer = optimizer;
  auto batch = static_cast<uint32_t>(microBatchSize);
  if (model) {
    uint32_t count = program::layerCount(*model);
    int64_t each = 0;
    for (uint32_t layer = 0; layer < count; ++layer) {
      program::LayerCost cost = program::layerCost(*model, types, batch, layer);
      table.layers.push_back(
          {cost.forwardFlops, cost.inputGradientFlops, cost.weightGradientFlops,
           cost.stashBytes, cost.weightStashBytes,
           program::boundaryBytes(*model, types, batch, layer),
           program::parameterCount(*model, layer, 1)});
      each = program::saturatedSum({each, table.layers.back().parameters});
    }
    table.tiedParameters = each - program::parameterCount(*model, 0, count);
  }
  for (const BareLayer &layer : bare)
    table.layers.push_back({times(layer.forwardFlops, microBatchSize),
                            times(layer.inputGradientFlops, microBatchSize),
                            times(layer.weightGradientFlops, microBatchSize),
                            times(layer.stashBytes, microBatchSize),
                            times(layer.weightStashBytes, microBatchSize),
                            times(layer.boundaryBytes, microBatchSize),
                            layer.parameters});
  if (!machine)
    return table;
  table.memoryBandwidth = machine->memoryBandwidth;
  for (LayerCost &layer : table.layers)
    for (int64_t *time :
         {&layer.forward, &layer.inputGradient, &layer.weightGradient})
      *time = nanoseconds(*time, machine->speed) + machine->layerOverhead;
  return table;
}

} // namespace chimera::plan
