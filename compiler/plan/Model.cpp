//===- Model.cpp - What the layers of a model take ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Model.h"

#include "runtime/program/Saturated.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

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

int64_t Model::smallestMicroBatch() const {
  if (!model || !model->package)
    return 1;
  const auto &graphs = program::kindOf(*model->package, 0).graphs;
  return (*std::ranges::min_element(graphs, {},
                                    &program::LayerGraphsT::samples))
      ->samples;
}

/// The most that costs of a model may add up to: sums of them stay below 2^63.
static constexpr int64_t kLargest = int64_t{1} << 60;

static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

std::string Model::checkProfiles(const Machine &machine) const {
  for (const Profile &profile : machine.profiles) {
    if (!model)
      return profile.name + ": expected no profile of a bare model";
    if (std::string problem = checkProfile(profile, *model, types, optimizer);
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
    if (std::string problem = program::checkUse(
            *model, types, static_cast<uint32_t>(microBatchSize),
            static_cast<uint32_t>(parts));
        !problem.empty())
      return problem;
  if (machine)
    if (std::string problem = checkProfiles(*machine); !problem.empty())
      return problem;
  int64_t total = 0, largest = 0, parameters = 0;
  for (const LayerCost &layer : table(microBatchSize, machine).layers) {
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

LayerTable Model::operations(int64_t microBatchSize) const {
  LayerTable table;
  table.types = types;
  table.optimizer = optimizer;
  auto batch = static_cast<uint32_t>(microBatchSize);
  if (model) {
    uint32_t count = program::layerCount(*model);
    int64_t each = 0;
    for (uint32_t layer = 0; layer < count; ++layer) {
      program::LayerCost cost = program::layerCost(*model, types, batch, layer);
      LayerCost &entry = table.layers.emplace_back();
      entry.forward = cost.forwardFlops;
      entry.inputGradient = cost.inputGradientFlops;
      entry.weightGradient = cost.weightGradientFlops;
      entry.stash = cost.stashBytes;
      entry.weightStash = cost.weightStashBytes;
      entry.boundary = program::boundaryBytes(*model, types, batch, layer);
      entry.parameters = program::parameterCount(*model, layer, 1);
      each = program::saturatedSum({each, entry.parameters});
    }
    table.tiedParameters = each - program::parameterCount(*model, 0, count);
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
  }
  for (LayerCost &layer : table.layers) {
    layer.backward =
        program::saturatedSum({layer.inputGradient, layer.weightGradient});
    layer.recompute = layer.forward;
  }
  return table;
}

namespace {

using Time = int64_t LayerCost::*;
constexpr Time kTimes[] = {
    &LayerCost::forward,       &LayerCost::backward,
    &LayerCost::inputGradient, &LayerCost::weightGradient,
    &LayerCost::recompute,     &LayerCost::update};

/// Shares out what a stage took over its layers, as `weight` of each says;
/// alike where it says nothing.
void shareOut(int64_t time, std::span<const LayerCost> weights, Time weight,
              std::span<LayerCost> layers, Time part) {
  __extension__ using Wide = __int128;
  auto weightOf = [&](size_t i) -> Wide {
    return static_cast<Wide>(weights[i].*weight) + 1;
  };
  Wide all = 0, before = 0;
  for (size_t i = 0; i < layers.size(); ++i)
    all += weightOf(i);
  for (size_t i = 0; i < layers.size(); ++i) {
    Wide behind = before + weightOf(i);
    layers[i].*part =
        static_cast<int64_t>(time * behind / all - time * before / all);
    before = behind;
  }
}

/// What the layers of a model took, of so many operations each, in a run.
std::vector<LayerCost>
measuredLayers(const Profile &profile,
               const std::vector<LayerCost> &operations) {
  std::vector<LayerCost> measured = operations;
  for (const MeasuredStage &stage : profile.stages) {
    auto count = static_cast<size_t>(stage.end - stage.first);
    auto of = std::span(operations).subspan(stage.first, count);
    auto to = std::span(measured).subspan(stage.first, count);
    auto share = [&](int64_t time, Time weight, Time part) {
      shareOut(time, of, weight, to, part);
    };
    share(stage.forward, &LayerCost::forward, &LayerCost::forward);
    share(stage.recompute > 0 ? stage.recompute : stage.forward,
          &LayerCost::forward, &LayerCost::recompute);
    share(stage.update, &LayerCost::parameters, &LayerCost::update);
    // Of a run with whole backwards or with split ones the other is not known.
    bool isSplit = stage.inputGradient > 0;
    share(stage.backward > 0 ? stage.backward
                             : stage.inputGradient + stage.weightGradient,
          &LayerCost::backward, &LayerCost::backward);
    if (isSplit) {
      share(stage.inputGradient, &LayerCost::inputGradient,
            &LayerCost::inputGradient);
      share(stage.weightGradient, &LayerCost::weightGradient,
            &LayerCost::weightGradient);
    }
    for (size_t i = 0; !isSplit && i < count; ++i) {
      // Half of it, as far as it is not the input's or the weights' alone.
      __extension__ using Wide = __int128;
      Wide all = static_cast<Wide>(of[i].inputGradient) + of[i].weightGradient;
      to[i].inputGradient = static_cast<int64_t>(
          all == 0 ? to[i].backward / 2
                   : to[i].backward * Wide(of[i].inputGradient) / all);
      to[i].weightGradient = to[i].backward - to[i].inputGradient;
    }
    // What is loaded is for the first layer, or for the last one's labels.
    (stage.first == 0 ? to.front() : to.back()).forward += stage.load;
  }
  return measured;
}

/// Takes from `layers`, of a second profile of a size, the kind of backwards
/// that the first did not have.
void addBackwards(const Profile &second, const std::vector<LayerCost> &layers,
                  std::vector<LayerCost> &first) {
  std::vector<Time> added = {&LayerCost::backward};
  if (second.hasSplit())
    added = {&LayerCost::inputGradient, &LayerCost::weightGradient};
  for (size_t i = 0; i < layers.size(); ++i)
    for (Time time : added)
      first[i].*time = layers[i].*time;
}

/// A micro-batch size, and one or two that were measured.
struct SizeOfTime {
  double size, below, above;

  /// Of a time that is on a line between the two.
  double fixed(double low, double high) const {
    return below == above
               ? low
               : low + (high - low) *
                           std::clamp((size - below) / (above - below), 0., 1.);
  }
  /// Of a time that grows with the size: on the line beyond both too, but not
  /// where that makes samples of small micro-batches faster than any that were
  /// measured, or a larger micro-batch faster than a smaller one.
  double growing(double low, double high) const {
    if (below == above)
      return low * size / below;
    const double line = low + (high - low) * (size - below) / (above - below);
    if (size < below)
      return std::clamp(line, low * size / below, low);
    return size > above ? std::max(line, high) : line;
  }
};

} // namespace

/// Sets the times of `table`, which has operations, to what was measured.
static void setMeasured(LayerTable &table, int64_t microBatchSize,
                        const std::vector<Profile> &profiles) {
  // By size. Operations say what part of a stage's time a layer has, which is
  // the same for all sizes.
  std::map<int64_t, std::vector<LayerCost>> known;
  for (const Profile &profile : profiles) {
    std::vector<LayerCost> layers = measuredLayers(profile, table.layers);
    auto [place, isNew] = known.try_emplace(profile.microBatchSize, layers);
    if (!isNew)
      addBackwards(profile, layers, place->second);
  }
  // The sizes beside it, or the two nearest; one alone is both.
  auto above = known.lower_bound(microBatchSize);
  if (above == known.end())
    --above;
  auto below = above;
  if (above->first != microBatchSize && known.size() > 1) {
    if (below != known.begin())
      --below;
    else
      ++above;
  }
  const SizeOfTime size{static_cast<double>(microBatchSize),
                        static_cast<double>(below->first),
                        static_cast<double>(above->first)};
  for (size_t i = 0; i < table.layers.size(); ++i)
    for (Time time : kTimes) {
      auto low = static_cast<double>(below->second[i].*time);
      auto high = static_cast<double>(above->second[i].*time);
      double value = time == &LayerCost::update ? size.fixed(low, high)
                                                : size.growing(low, high);
      table.layers[i].*time = std::llround(std::clamp(value, 0.0, 0x1p60));
    }
}

LayerTable Model::table(int64_t microBatchSize, const Machine *machine) const {
  LayerTable table = operations(microBatchSize);
  if (!machine)
    return table;
  if (!machine->profiles.empty()) {
    setMeasured(table, microBatchSize, machine->profiles);
    return table;
  }
  for (LayerCost &layer : table.layers) {
    for (Time time : {&LayerCost::forward, &LayerCost::inputGradient,
                      &LayerCost::weightGradient})
      layer.*time =
          nanoseconds(layer.*time, machine->speed) + machine->layerOverhead;
    layer.backward = layer.inputGradient + layer.weightGradient;
    layer.recompute = layer.forward;
    // Read: gradient, weights, optimizer state; written: the latter two.
    int64_t bytes = program::parameterBytes(types, layer.parameters);
    int64_t state = program::optimizerBytes(optimizer, bytes);
    int64_t copy = program::copyBytes(types, layer.parameters);
    if (machine->memoryBandwidth > 0)
      layer.update = nanoseconds(
          program::saturatedSum({bytes, 2 * bytes, 2 * copy, state, state}),
          machine->memoryBandwidth);
  }
  return table;
}

} // namespace chimera::plan
