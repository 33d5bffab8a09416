//===- MeasuredLayers.cpp - Costs of layers from measurements -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/MeasuredLayers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace chimera::cost {

namespace {

using Time = int64_t LayerCost::*;
constexpr Time kTimes[] = {
    &LayerCost::forward,       &LayerCost::backward,
    &LayerCost::inputGradient, &LayerCost::weightGradient,
    &LayerCost::recompute,     &LayerCost::update};

/// The times that each kind of measurement provides.
constexpr struct {
  unsigned kind;
  Time time;
} kTimesOfKinds[] = {{kBackward, &LayerCost::backward},
                     {kSplitBackward, &LayerCost::inputGradient},
                     {kSplitBackward, &LayerCost::weightGradient},
                     {kRecompute, &LayerCost::recompute}};

/// Divides the time of a stage among its layers, and sets `part` of each layer.
/// A layer's share is in proportion to its `weight` plus 1. Thus layers without
/// weight have a share too.
void divideAmongLayers(int64_t time, std::span<const LayerCost> weights,
                       Time weight, std::span<LayerCost> layers, Time part) {
  __extension__ using Wide = __int128;
  auto weightOf = [&](size_t i) -> Wide {
    return static_cast<Wide>(weights[i].*weight) + 1;
  };
  Wide all = 0, before = 0;
  for (size_t i = 0; i < layers.size(); ++i)
    all += weightOf(i);
  for (size_t i = 0; i < layers.size(); ++i) {
    Wide after = before + weightOf(i);
    layers[i].*part =
        static_cast<int64_t>(time * after / all - time * before / all);
    before = after;
  }
}

/// The times of a model's layers in the run of `profile`. `operations` has the
/// number of operations of each layer.
std::vector<LayerCost>
measuredLayers(const Profile &profile,
               const std::vector<LayerCost> &operations) {
  std::vector<LayerCost> measured = operations;
  for (const MeasuredStage &stage : profile.stages) {
    auto count = static_cast<size_t>(stage.end - stage.first);
    auto of = std::span(operations).subspan(stage.first, count);
    auto to = std::span(measured).subspan(stage.first, count);
    auto share = [&](int64_t time, Time weight, Time part) {
      divideAmongLayers(time, of, weight, to, part);
    };
    share(stage.forward, &LayerCost::forward, &LayerCost::forward);
    share(stage.recompute > 0 ? stage.recompute : stage.forward,
          &LayerCost::forward, &LayerCost::recompute);
    share(stage.update, &LayerCost::parameters, &LayerCost::update);
    // If a run has only whole or only split backwards, derive the times of the
    // other kind.
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
      // Divide the time of a whole backward in proportion to the operations of
      // the input gradient and of the weight gradient, or equally if both have
      // none.
      __extension__ using Wide = __int128;
      Wide all = static_cast<Wide>(of[i].inputGradient) + of[i].weightGradient;
      to[i].inputGradient = static_cast<int64_t>(
          all == 0 ? to[i].backward / 2
                   : to[i].backward * Wide(of[i].inputGradient) / all);
      to[i].weightGradient = to[i].backward - to[i].inputGradient;
    }
    // The first stage loads the inputs of its first layer. A later stage can
    // only load the labels of its last layer. Add the time to the forward of
    // this layer.
    (stage.first == 0 ? to.front() : to.back()).forward += stage.load;
  }
  return measured;
}

/// The known times of the layers for one micro-batch size.
struct KnownTimes {
  std::vector<LayerCost> layers;
  std::vector<unsigned> kinds; ///< kinds of times measured, by layer

  /// Adds the times of `profile` that are not known yet. `measured` has them by
  /// layer. The run of `profile` may have been slower than the first run with
  /// this micro-batch size. So the times are multiplied by the forward time of
  /// the first run, divided by the forward time of this run.
  void add(const Profile &profile, const std::vector<LayerCost> &measured) {
    if (layers.empty()) {
      layers = measured;
      kinds.resize(layers.size());
    }
    const double ratio = forwards(layers) / forwards(measured);
    for (const MeasuredStage &stage : profile.stages)
      for (int32_t i = stage.first; i < stage.end; ++i) {
        for (const auto &[kind, time] : kTimesOfKinds)
          if (stage.kinds() & ~kinds[i] & kind)
            layers[i].*time = std::llround(std::min(
                static_cast<double>(measured[i].*time) * ratio, 0x1p60));
        kinds[i] |= stage.kinds();
      }
  }

private:
  /// The forward time of all layers. It is positive, because readProfile
  /// requires a forward time of every stage.
  static double forwards(const std::vector<LayerCost> &layers) {
    double sum = 0;
    for (const LayerCost &layer : layers)
      sum += static_cast<double>(layer.forward);
    return sum;
  }
};

/// Interpolates times at the micro-batch size `size`. `below` and `above` are
/// the two nearest measured sizes. They are equal if `size` was measured, or if
/// only one size was.
struct SizeInterpolation {
  double size, below, above;

  /// Interpolates a time that does not depend on the size, such as the time of
  /// an update. `low` and `high` are the times at `below` and `above`. Outside
  /// of the measured sizes, the result is the time at the nearest one.
  double fixed(double low, double high) const {
    return below == above
               ? low
               : low + (high - low) *
                           std::clamp((size - below) / (above - below), 0., 1.);
  }
  /// Interpolates a time that grows with the size. Outside of the measured
  /// sizes, the line through `low` and `high` continues, with two limits. If
  /// `size` is less than `below`, the time per sample is at least the time per
  /// sample at `below`. A larger micro-batch never takes less time than a
  /// smaller one.
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

void setMeasured(LayerTable &table, int64_t microBatchSize,
                 const std::vector<Profile> &profiles) {
  // `known` is keyed by micro-batch size. table.layers has the numbers of
  // operations for `microBatchSize`. They serve for every profile, because
  // measuredLayers needs only their proportions: it divides the time of a stage
  // among its layers.
  std::map<int64_t, KnownTimes> known;
  for (const Profile &profile : profiles)
    known[profile.microBatchSize].add(profile,
                                      measuredLayers(profile, table.layers));
  // The nearest measured sizes below and above. If all measured sizes are on
  // one side, the two nearest ones. If there is only one, both are this size.
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
  const SizeInterpolation size{static_cast<double>(microBatchSize),
                               static_cast<double>(below->first),
                               static_cast<double>(above->first)};
  for (size_t i = 0; i < table.layers.size(); ++i)
    for (Time time : kTimes) {
      auto low = static_cast<double>(below->second.layers[i].*time);
      auto high = static_cast<double>(above->second.layers[i].*time);
      double value = time == &LayerCost::update ? size.fixed(low, high)
                                                : size.growing(low, high);
      table.layers[i].*time = std::llround(std::clamp(value, 0.0, 0x1p60));
    }
}

} // namespace chimera::cost
