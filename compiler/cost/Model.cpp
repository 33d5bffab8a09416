//===- Model.cpp - Costs of the layers of a model -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Model.h"

#include "compiler/cost/MeasuredLayers.h"
#include "runtime/program/Fields.h"
#include "runtime/program/Optimizer.h"
#include "runtime/program/Saturated.h"

#include <algorithm>

namespace chimera::cost {

Model::Model(std::shared_ptr<const program::PackageT> model,
             program::Types types, program::OptimizerT optimizer)
    : model(std::move(model)), types(types), optimizer(std::move(optimizer)) {}

Model::Model(std::vector<BareLayer> layers, program::Types types,
             program::OptimizerT optimizer)
    : bare(std::move(layers)), types(types), optimizer(std::move(optimizer)) {}

int32_t Model::layerCount() const {
  return static_cast<int32_t>(model ? program::layerCount(*model)
                                    : bare.size());
}

int64_t Model::tokens() const {
  return model ? program::contextOf(*model).value_or(0) : 0;
}

/// The limit for the sum of a model's costs. Later sums of such costs then stay
/// below 2^63.
static constexpr int64_t kLargest = int64_t{1} << 60;

static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

std::string Model::checkProfiles(const Machine &machine) const {
  for (const Profile &profile : machine.profiles) {
    if (!model)
      return profile.name + ": a model of bare layers takes no profile, "
                            "because its layers state their costs";
    if (std::string problem =
            checkProfile(profile, *model, types, optimizer.name);
        !problem.empty())
      return problem;
  }
  return checkTogether(machine.profiles);
}

std::string Model::check(int64_t microBatchSize, int64_t parts,
                         const Machine *machine) const {
  if (microBatchSize < 1 || microBatchSize > UINT32_MAX)
    return "expected a micro-batch of at least one sample and less than 2^32, "
           "got " +
           std::to_string(microBatchSize);
  if (model)
    if (std::string problem = program::checkTypesAndSizes(
            *model, types, static_cast<uint32_t>(microBatchSize),
            static_cast<uint32_t>(parts));
        !problem.empty())
      return problem;
  if (machine)
    if (std::string problem = checkProfiles(*machine); !problem.empty())
      return problem;
  int64_t total = 0, largest = 0, parameters = 0;
  for (const LayerCost &layer : table(microBatchSize, parts, machine).layers) {
    total = program::saturatedSum({total, layer.forward, layer.recompute,
                                   layer.backward, layer.inputGradient,
                                   layer.weightGradient, layer.update,
                                   layer.stash, layer.weightStash});
    largest = std::max(largest, layer.boundary);
    parameters = program::saturatedSum({parameters, layer.parameters});
  }
  if (total > kLargest || largest > kLargest || parameters > kLargest / 16)
    return "expected a model whose operations, bytes and nanoseconds for a "
           "micro-batch are below 2^60";
  return {};
}

LayerTable Model::operations(int64_t microBatchSize, int64_t parts) const {
  LayerTable table;
  table.types = types;
  auto batch = static_cast<uint32_t>(microBatchSize);
  if (model) {
    uint32_t count = program::layerCount(*model);
    int64_t each = 0, eachState = 0;
    const auto stateElementsOf = [&](uint32_t first, uint32_t layers) {
      return program::stateLayout(optimizer, *model, first, layers).elements;
    };
    for (uint32_t layer = 0; layer < count; ++layer) {
      program::LayerCost cost = program::layerCost(*model, batch, layer);
      LayerCost &entry = table.layers.emplace_back();
      entry.forward = cost.forwardFlops;
      entry.inputGradient = cost.inputGradientFlops;
      entry.weightGradient = cost.weightGradientFlops;
      entry.stash = cost.stashBytes;
      entry.weightStash = cost.weightStashBytes;
      if (parts > 1 && microBatchSize % parts == 0) {
        // Compute the bytes of a part for the samples of one part. The bytes of
        // the micro-batch divided by `parts` would be too few: each part has
        // its own stash, and some values in a stash do not shrink with the
        // number of samples.
        program::LayerCost part = program::layerCost(
            *model, static_cast<uint32_t>(microBatchSize / parts), layer);
        entry.stash = std::max(entry.stash, times(part.stashBytes, parts));
        entry.weightStash =
            std::max(entry.weightStash, times(part.weightStashBytes, parts));
      }
      entry.boundary = program::boundaryBytes(*model, batch, layer);
      entry.parameters = program::parameterCount(*model, layer, 1);
      entry.stateElements = stateElementsOf(layer, 1);
      entry.update = program::orthogonalisationFlops(optimizer, *model, layer);
      each = program::saturatedSum({each, entry.parameters});
      eachState = program::saturatedSum({eachState, entry.stateElements});
    }
    table.tiedParameters = each - program::parameterCount(*model, 0, count);
    table.tiedStateElements = eachState - stateElementsOf(0, count);
  }
  for (const BareLayer &layer : bare) {
    LayerCost &entry = table.layers.emplace_back();
    entry.forward = times(layer.forwardFlops, microBatchSize);
    entry.inputGradient = times(layer.inputGradientFlops, microBatchSize);
    entry.weightGradient = times(layer.weightGradientFlops, microBatchSize);
    entry.stash = times(layer.stashBytes, microBatchSize);
    entry.weightStash = times(layer.weightStashBytes, microBatchSize);
    entry.boundary = times(layer.boundaryBytes, microBatchSize);
    entry.parameters = layer.parameters;
    // A bare layer has no shapes: all its parameters count as matrices.
    const bool isInner = &layer != &bare.front() && &layer != &bare.back();
    entry.stateElements =
        times(layer.parameters,
              static_cast<int64_t>(
                  program::statesOf(program::ruleOfMatrices(optimizer, isInner))
                      .size()));
  }
  for (LayerCost &layer : table.layers) {
    layer.backward =
        program::saturatedSum({layer.inputGradient, layer.weightGradient});
    layer.recompute = layer.forward;
  }
  return table;
}

LayerTable Model::table(int64_t microBatchSize, int64_t parts,
                        const Machine *machine) const {
  LayerTable table = operations(microBatchSize, parts);
  if (!machine)
    return table;
  if (!machine->profiles.empty()) {
    setMeasured(table, microBatchSize, machine->profiles);
    return table;
  }
  for (LayerCost &layer : table.layers) {
    for (int64_t LayerCost::*time :
         {&LayerCost::forward, &LayerCost::inputGradient,
          &LayerCost::weightGradient})
      layer.*time =
          nanosecondsFor(layer.*time, machine->speed) + machine->layerOverhead;
    layer.backward = layer.inputGradient + layer.weightGradient;
    layer.recompute = layer.forward;
    // The bytes that an update moves: it reads the gradient, the weights and
    // the optimizer state, and writes the weights and the optimizer state.
    int64_t bytes = program::parameterBytes(types, layer.parameters);
    int64_t state = program::parameterBytes(types, layer.stateElements);
    int64_t copy = program::copyBytes(types, layer.parameters);
    layer.update = nanosecondsFor(layer.update, machine->speed);
    if (machine->memoryBandwidth > 0)
      layer.update += nanosecondsFor(
          program::saturatedSum({bytes, 2 * bytes, 2 * copy, state, state}),
          machine->memoryBandwidth);
  }
  return table;
}

} // namespace chimera::cost
