//===- StageLayers.cpp - The layers of a stage as graphs ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/StageLayers.h"

#include "runtime/model/tensors/TensorOver.h"
#include "runtime/program/Layers.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

/// The maximum size of a tensor that a kind of layer needs: see
/// StageLayers::run. Temporaries may be larger than the stated tensors: a
/// convolution kernel copies each element once for each weight by which it
/// multiplies the element.
static uint64_t mostBytesOf(const program::LayerKindT &kind, uint32_t samples,
                            at::ScalarType type) {
  constexpr uint64_t kWorkspace = uint64_t{1} << 24;
  constexpr uint64_t kIntermediates = 64;
  return kWorkspace +
         kIntermediates *
             static_cast<uint64_t>(largestBytes(
                 kind, samples, static_cast<int64_t>(at::elementSize(type))));
}

/// The program's package. Throws std::invalid_argument if there is none, or if
/// the model is refused.
static const program::PackageT &packageOf(const program::ProgramT &program) {
  if (!program.model)
    throw std::invalid_argument("expected a program with a model, got one of "
                                "bare stages, which the synthetic and exact "
                                "stages can run");
  if (std::string problem = program::checkPackage(*program.model);
      !problem.empty())
    throw std::invalid_argument("model: " + problem);
  if (std::string problem =
          program::checkTypesAndSizes(*program.model, program::typesOf(program),
                                      program.micro_batch_size, /*parts=*/1);
      !problem.empty())
    throw std::invalid_argument(problem);
  return *program.model;
}

StageLayers::StageLayers(const program::ProgramT &program, uint32_t first,
                         uint32_t count, const DevicePlacement &placement,
                         const NativeCode *native)
    : package(packageOf(program)), seed(program.seed), first(first),
      count(count > 0 ? count : static_cast<uint32_t>(package.layers.size())),
      placement(placement), native(native),
      parameters(program, first, this->count, placement) {
  countTensorBytes(); // for TensorLimit
  // The index within the stage's parameters, by layer and parameter number.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> slots;
  for (uint32_t i = 0; i < parameters.slots().size(); ++i)
    slots[{parameters.slots()[i].layer, parameters.slots()[i].number}] = i;
  for (uint32_t layer = first; layer < first + this->count; ++layer) {
    const program::LayerKindT &kind = kindOf(package, layer);
    std::vector<uint32_t> &numbers = slotsOf.emplace_back();
    for (uint32_t i = 0; i < kind.parameters.size(); ++i) {
      auto found = slots.find({layer, i});
      if (found == slots.end()) { // tied: stored as the first layer's
        const auto [other, number] =
            program::initialValueSource(*program.model, layer, i);
        found = slots.find({other, number});
      }
      numbers.push_back(found->second);
    }
    if (!constants.contains(&kind))
      constants[&kind] = constantsOf(kind, deviceOf(placement));
    mostBytes = std::max(mostBytes, mostBytesOf(kind, program.micro_batch_size,
                                                parameters.type()));
  }
  // Make all layers now: the constant tensors of their calls belong to the
  // stage, and not to the stash of the step that first needs them.
  forSamples(program.micro_batch_size);
  for (const auto &pipeline : program.pipelines)
    if (const uint32_t parts = std::max(pipeline->backward_parts, 1u);
        program.micro_batch_size % parts == 0)
      forSamples(program.micro_batch_size / parts);
}

const std::vector<const Layer *> &StageLayers::forSamples(uint32_t samples) {
  std::vector<const Layer *> &layers = bySamples[samples];
  if (!layers.empty())
    return layers;
  std::vector<const Layer *> all;
  for (uint32_t layer = first; layer < first + count; ++layer) {
    const program::LayerKindT &kind = kindOf(package, layer);
    std::unique_ptr<Layer> &shared = made[{&kind, samples}];
    if (!shared)
      shared = std::make_unique<Layer>(kind, constants.at(&kind), samples,
                                       placement, native);
    all.push_back(shared.get());
  }
  return layers = std::move(all);
}

Executable::Context
StageLayers::contextOf(uint32_t k, std::optional<MicroBatch> dropped) const {
  return {.calls = {.seed = seed,
                    .layer = first + k,
                    .dropped = dropped,
                    .kernels = placement.kernels,
                    .step = step,
                    .wrongIndex = wrongIndex},
          .sums = {}};
}

std::vector<Tensor>
StageLayers::parametersOf(uint32_t k, const std::vector<Tensor> &all) const {
  std::vector<Tensor> result;
  for (uint32_t slot : slotsOf[k])
    result.push_back(all[slot]);
  return result;
}

std::vector<GradientSum *>
StageLayers::sumsOf(uint32_t k, std::vector<GradientSum> &all) const {
  std::vector<GradientSum *> result;
  for (uint32_t slot : slotsOf[k])
    result.push_back(&all[slot]);
  return result;
}

std::string StageLayers::nameOf(uint32_t k) const {
  const std::string &path = package.layers[first + k]->path;
  return "layer " + std::to_string(first + k) +
         (path.empty() ? "" : " (" + path.substr(0, path.size() - 1) + ")");
}

std::string StageLayers::wrongIndexMessage(int32_t flag) const {
  return nameOf(static_cast<uint32_t>(flag) - 1 - first) +
         ": expected indices inside of their tensor, got one outside: run the "
         "step on a host (without --device cuda), whose message names the "
         "index";
}
