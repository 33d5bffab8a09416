//===- StageWeights.cpp - A stage's weights as tensors --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/StageWeights.h"

#include "runtime/model/Clipping.h"
#include "runtime/model/optimizer/AdamW.h"
#include "runtime/model/optimizer/SquaredNorm.h"
#include "runtime/model/tensors/TensorOver.h"
#include "runtime/model/weights/Finite.h"
#include "runtime/program/Optimizer.h"
#include "runtime/random/Random.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

void chimera::runtime::expectBytes(const char *what, size_t bytes,
                                   int64_t expected) {
  if (bytes != static_cast<size_t>(expected))
    throw std::invalid_argument("expected " + std::to_string(expected) +
                                " bytes of " + what + ", got " +
                                std::to_string(bytes));
}

at::ScalarType chimera::runtime::scalarTypeOf(program::DataType type) {
  switch (type) {
  case program::DataType::Float32:
    return at::kFloat;
  case program::DataType::Float64:
    return at::kDouble;
  case program::DataType::BFloat16:
    return at::kBFloat16;
  }
  throw std::invalid_argument("expected a known data type");
}

std::vector<StageWeights::UpdateRun>
StageWeights::runsOf(const std::vector<Slot> &slots) {
  std::vector<UpdateRun> runs;
  int64_t end = -1; // of the last run
  for (const Slot &slot : slots) {
    if (slot.state.rule == program::UpdateRule::Muon)
      continue;
    if (slot.offset != end)
      runs.push_back({slot.offset, slot.state.offsets, {}});
    UpdateRun &run = runs.back();
    end = slot.offset + slot.parameter.elements();
    if (!run.ranges.empty() && run.ranges.back().decays == slot.decays)
      run.ranges.back().end = end - run.begin;
    else
      run.ranges.push_back({end - run.begin, slot.decays});
  }
  return runs;
}

StageWeights::StageWeights(const program::ProgramT &program, uint32_t first,
                           uint32_t layers, const DevicePlacement &placement)
    : types(program::typesOf(program)), seed(program.seed),
      placement(placement) {
  const program::PackageT *model = program.model.get();
  if (!model)
    throw std::invalid_argument("expected a program with a model, got one of "
                                "bare stages, which the synthetic and exact "
                                "stages can run");
  if (std::string problem = program::checkPackage(*model); !problem.empty())
    throw std::invalid_argument("model: " + problem);
  if (std::string problem = program::checkTypes(types); !problem.empty())
    throw std::invalid_argument(problem);
  const uint64_t all = program::layerCount(*model);
  if (layers == 0 || uint64_t{first} + layers > all)
    throw std::invalid_argument(
        "expected a range of the model's " + std::to_string(all) +
        " layers (embedding and head included), got " + std::to_string(layers) +
        " from layer " + std::to_string(first));
  if (std::string problem = program::checkOptimizer(
          program.optimizer ? program.optimizer->name : "");
      !problem.empty())
    throw std::invalid_argument(problem);
  optimizer = *program.optimizer;
  const program::StateLayout layout =
      program::stateLayout(optimizer, *model, first, layers);
  stateElements = layout.elements;
  for (program::StageParameter &held :
       program::stageParameters(*model, first, layers)) {
    const int64_t size = held.parameter.elements();
    const program::ParameterId initialFrom =
        program::initialValueSource(*model, held.layer, held.number);
    std::string name =
        program::parameterName(*model, initialFrom.layer, initialFrom.number);
    const bool decays =
        program::decays(optimizer, name, held.parameter.decays());
    parameterSlots.push_back(
        {std::move(held), count, std::move(name), initialFrom,
         layout.parameters[parameterSlots.size()], decays});
    count += size;
  }
  runs = runsOf(parameterSlots);
}

at::ScalarType StageWeights::type() const {
  return scalarTypeOf(types.weights);
}

at::ScalarType StageWeights::computedType() const {
  return scalarTypeOf(types.activations);
}

std::vector<Tensor>
StageWeights::tensorsOver(const std::byte *parameters) const {
  return tensorsOverAs(parameters, types.weights);
}

std::vector<Tensor>
StageWeights::computedTensorsOver(const std::byte *weights) const {
  return types.weightsHaveComputeCopy()
             ? tensorsOverAs(weights + parameterBytes(), types.activations)
             : tensorsOver(weights);
}

std::vector<Tensor> StageWeights::tensorsOverAs(const std::byte *flat,
                                                program::DataType type) const {
  std::vector<Tensor> tensors;
  tensors.reserve(parameterSlots.size());
  for (const Slot &slot : parameterSlots)
    tensors.push_back(tensorOver(flat + slot.offset * program::bytesOf(type),
                                 slot.parameter.shape, scalarTypeOf(type),
                                 placement));
  return tensors;
}

void StageWeights::refreshCopy(std::byte *weights) const {
  if (!types.weightsHaveComputeCopy())
    return;
  auto flat = [&](const std::byte *begin, at::ScalarType type) {
    return tensorOver(begin, {count}, type, placement);
  };
  flat(weights + parameterBytes(), computedType()).copy_(flat(weights, type()));
}

/// Draws `values` from the normal distribution N(mean, deviation²), truncated
/// to the range from low to high. Applies the inverse of the distribution
/// function to uniform random numbers.
static void drawTruncated(Tensor &values, const program::Parameter &parameter,
                          at::Generator generator) {
  const double scale = parameter.deviation * std::numbers::sqrt2;
  const auto below = [&](double bound) {
    return std::erf((bound - parameter.mean) / scale);
  };
  values.uniform_(below(parameter.low), below(parameter.high), generator)
      .erfinv_()
      .mul_(scale)
      .add_(parameter.mean)
      .clamp_(parameter.low, parameter.high);
}

/// The initial values of a parameter, in float64. Requires that they do not
/// come from a file.
static Tensor draw(const program::Parameter &parameter, uint64_t seed) {
  Tensor values = at::zeros(parameter.shape, at::kDouble);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  switch (parameter.start) {
  case program::Initialization::Zeros:
    break;
  case program::Initialization::Ones:
    values.fill_(1);
    break;
  case program::Initialization::Constant:
    values.fill_(parameter.mean);
    break;
  case program::Initialization::Normal:
    values.normal_(parameter.mean, parameter.deviation, generator);
    break;
  case program::Initialization::Uniform:
    values.uniform_(parameter.low, parameter.high, generator);
    break;
  case program::Initialization::TruncatedNormal:
    drawTruncated(values, parameter, generator);
    break;
  case program::Initialization::Given:
    throw std::invalid_argument("expected a start that can be drawn");
  }
  if (parameter.zeroRow >= 0)
    values[parameter.zeroRow].zero_();
  return values;
}

/// The initial values of a parameter, on the host. They are float64 if they are
/// drawn at random, otherwise they have the type of the weights.
Tensor StageWeights::startOf(const Slot &slot,
                             const InitialValues *values) const {
  const program::Parameter &parameter = slot.parameter;
  if (values) {
    Tensor read = at::empty(parameter.shape, type());
    values->read(slot.name, types.weights, parameter.shape,
                 {static_cast<std::byte *>(read.data_ptr()), read.nbytes()});
    return read;
  }
  if (parameter.start == program::Initialization::Given)
    throw std::invalid_argument(
        "expected initial values of '" + slot.name +
        "', which the model does not draw: give --load FILE");
  return draw(parameter, mix({seed, kInitialWeights, slot.initialFrom.layer,
                              slot.initialFrom.number}));
}

void StageWeights::initialize(Bytes weights, Bytes optimizerState,
                              const InitialValues *values) const {
  expectBytes("optimizer state", optimizerState.size(), stateBytes());
  initializeWeights(weights, values);
  tensorOver(optimizerState.data(),
             {static_cast<int64_t>(optimizerState.size())}, at::kByte,
             placement)
      .zero_();
  if (values)
    readStates(optimizerState, *values);
}

/// Sets the parts of the optimizer state that `values` has.
void StageWeights::readStates(Bytes optimizerState,
                              const InitialValues &values) const {
  for (const Slot &slot : parameterSlots) {
    const std::vector<int64_t> &shape = slot.parameter.shape;
    for (size_t i = 0; i < slot.state.offsets.size(); ++i) {
      Tensor read = at::empty(shape, type());
      if (values.readState(
              slot.name, program::statesOf(slot.state.rule)[i], types.weights,
              shape,
              {static_cast<std::byte *>(read.data_ptr()), read.nbytes()}))
        tensorOver(optimizerState.data() +
                       program::parameterBytes(types, slot.state.offsets[i]),
                   shape, type(), placement)
            .copy_(read);
    }
  }
}

void StageWeights::initializeWeights(Bytes weights,
                                     const InitialValues *values) const {
  expectBytes("weights", weights.size(), bytes());
  std::vector<Tensor> tensors = tensorsOver(weights.data());
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].copy_(startOf(parameterSlots[i], values));
  refreshCopy(weights.data());
}

void StageWeights::squaredNorm(ConstBytes gradientSum,
                               Bytes squaredNorm) const {
  expectBytes("a squared norm", squaredNorm.size(), program::kNormBytes);
  if (!placement.isOnGpu()) {
    const double sum = squaredNormOf(types.weights, gradientSum);
    std::memcpy(squaredNorm.data(), &sum, sizeof sum);
    return;
  }
  // The number of elements that are converted to float64 at a time.
  constexpr int64_t kBlock = int64_t{1} << 22;
  const at::NoGradGuard noGraph;
  const auto size = static_cast<int64_t>(gradientSum.size()) /
                    program::bytesOf(types.weights);
  const Tensor all = tensorOver(gradientSum.data(), {size}, type(), placement);
  Tensor sum = tensorOver(squaredNorm.data(), {}, at::kDouble, placement);
  sum.zero_();
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const Tensor block = all.narrow(0, begin, std::min(kBlock, size - begin));
    // A copy, because the gradient must stay.
    Tensor squares = block.to(at::kDouble, /*non_blocking=*/false,
                              /*copy=*/true);
    sum.add_(squares.square_().sum());
  }
}

void StageWeights::update(const Update &given, ConstBytes gradientSum,
                          Bytes weights, Bytes optimizerState, Bytes halted,
                          ConstBytes squaredNorm) const {
  expectBytes("gradient", gradientSum.size(), parameterBytes());
  expectBytes("weights", weights.size(), bytes());
  expectBytes("optimizer state", optimizerState.size(), stateBytes());
  if (!halted.empty())
    expectBytes("a flag", halted.size(), kFlagBytes);
  if (!squaredNorm.empty())
    expectBytes("a squared norm", squaredNorm.size(), program::kNormBytes);
  const at::NoGradGuard noGraph;
  Update numbers = given;
  UpdateTensors onGpu;
  if (placement.isOnGpu())
    onGpu = decideOnGpu(numbers, gradientSum, halted, squaredNorm);
  else if (!goesOn(numbers, gradientSum, halted, squaredNorm))
    return;
  if (optimizer.name == program::kMuon)
    stepOfMuon(numbers, onGpu, gradientSum, weights, optimizerState);
  if (optimizer.name == program::kSgd ||
      optimizer.name == program::kSgdMomentum)
    stepOfSgd(numbers, onGpu, gradientSum, weights, optimizerState);
  else if (type() == at::kDouble)
    stepOfAdamW<double>(numbers, onGpu, gradientSum, weights, optimizerState);
  else if (type() == at::kBFloat16)
    stepOfAdamW<BFloat16>(numbers, onGpu, gradientSum, weights, optimizerState);
  else
    stepOfAdamW<float>(numbers, onGpu, gradientSum, weights, optimizerState);
  refreshCopy(weights.data());
}

bool StageWeights::goesOn(Update &numbers, ConstBytes gradientSum, Bytes halted,
                          ConstBytes squaredNorm) const {
  int32_t flag = 0;
  if (!halted.empty())
    std::memcpy(&flag, halted.data(), sizeof flag);
  if (hasHalted(flag))
    return false;
  bool isFinite = true;
  if (!squaredNorm.empty()) {
    double square = 0;
    std::memcpy(&square, squaredNorm.data(), sizeof square);
    isFinite = std::isfinite(square);
    if (isFinite)
      numbers.scale = clippedScale(square, numbers.scale, numbers.clipNorm);
  } else if (!halted.empty()) {
    isFinite = areFinite(types.weights, gradientSum);
  }
  if (!isFinite && !halted.empty()) {
    flag = flagAfterNonFinite(flag, numbers.skipNonFinite);
    std::memcpy(halted.data(), &flag, sizeof flag);
  }
  return isFinite;
}

UpdateTensors StageWeights::decideOnGpu(const Update &numbers,
                                        ConstBytes gradientSum, Bytes halted,
                                        ConstBytes squaredNorm) const {
  UpdateTensors result;
  Tensor isBad;
  if (!squaredNorm.empty()) {
    const Tensor square =
        tensorOver(squaredNorm.data(), {}, at::kDouble, placement);
    isBad = square.isfinite().logical_not();
    result.scale = clippedScaleOf(square, numbers.scale, numbers.clipNorm);
  } else if (!halted.empty()) {
    // If an element is not finite, the infinity norm is not finite either,
    // since NaN propagates.
    isBad = at::linalg_vector_norm(
                tensorOver(gradientSum.data(), {count}, type(), placement),
                std::numeric_limits<double>::infinity())
                .isfinite()
                .logical_not();
  }
  if (!isBad.defined())
    return result;
  result.stops =
      halted.empty()
          ? isBad.to(at::kInt)
          : stopsOf(isBad, tensorOver(halted.data(), {}, at::kInt, placement),
                    numbers.skipNonFinite);
  return result;
}

void StageWeights::stepOfMuon(const Update &numbers, const UpdateTensors &onGpu,
                              ConstBytes gradientSum, Bytes weights,
                              Bytes optimizerState) const {
  for (const Slot &slot : parameterSlots) {
    if (slot.state.rule != program::UpdateRule::Muon)
      continue;
    auto matrix = [&](const std::byte *flat, int64_t offset) {
      return tensorOver(flat + program::parameterBytes(types, offset),
                        slot.parameter.shape, type(), placement);
    };
    muonStep(optimizer, numbers, onGpu, slot.decays, computedType(),
             matrix(gradientSum.data(), slot.offset),
             matrix(weights.data(), slot.offset),
             matrix(optimizerState.data(), slot.state.offsets[0]));
  }
}

void StageWeights::stepOfSgd(const Update &numbers, const UpdateTensors &onGpu,
                             ConstBytes gradientSum, Bytes weights,
                             Bytes optimizerState) const {
  auto flat = [&](const std::byte *begin) {
    return tensorOver(begin, {count}, type(), placement);
  };
  const Tensor gradients = flat(gradientSum.data());
  const Tensor all = flat(weights.data());
  const Tensor momenta =
      optimizerState.empty() ? Tensor() : flat(optimizerState.data());
  const Tensor isHalted =
      onGpu.stops.defined() ? onGpu.stops.to(at::kBool) : Tensor();
  const at::ScalarType computed = arithmeticOf(type());
  const Tensor scale =
      onGpu.scale.defined() ? onGpu.scale.to(computed) : Tensor();
  // The maximum number of elements that are updated at a time. They need
  // temporary memory.
  constexpr int64_t kBlock = int64_t{1} << 20;
  int64_t begin = 0;
  // All parameters have one rule, so they are one run.
  const std::span<const DecayRange> ranges =
      runs.empty() ? std::span<const DecayRange>() : runs.front().ranges;
  for (const DecayRange &range : ranges)
    for (; begin < range.end; begin += std::min(kBlock, range.end - begin)) {
      const int64_t size = std::min(kBlock, range.end - begin);
      Tensor weight = all.narrow(0, begin, size);
      const Tensor gradient = gradients.narrow(0, begin, size).to(computed);
      Tensor change =
          scale.defined() ? gradient.mul(scale) : gradient.mul(numbers.scale);
      if (range.decays && optimizer.weight_decay != 0)
        change.add_(weight, optimizer.weight_decay);
      if (momenta.defined()) {
        Tensor momentum = momenta.narrow(0, begin, size);
        const Tensor next =
            momentum.to(computed).mul(optimizer.momentum).add_(change);
        momentum.copy_(isHalted.defined() ? at::where(isHalted, momentum, next)
                                          : next);
        change =
            optimizer.nesterov ? change.add_(next, optimizer.momentum) : next;
      }
      if (isHalted.defined())
        change.masked_fill_(isHalted, 0);
      addTo(weight, change, -numbers.learningRate);
    }
}

template <typename T>
void StageWeights::stepOfAdamW(const Update &numbers,
                               const UpdateTensors &onGpu,
                               ConstBytes gradientSum, Bytes weights,
                               Bytes optimizerState) const {
  auto *state = reinterpret_cast<T *>(optimizerState.data());
  for (const UpdateRun &run : runs) {
    auto *gradient =
        reinterpret_cast<const T *>(gradientSum.data()) + run.begin;
    T *weight = reinterpret_cast<T *>(weights.data()) + run.begin;
    T *average = state + run.stateOffsets[0],
      *ofSquares = state + run.stateOffsets[1];
    if (placement.kernels) {
      placement.kernels->adamW(
          adamWFactors<Arithmetic<T>>(optimizer, numbers, /*decay=*/true),
          run.ranges, gradient, weight, average, ofSquares,
          onGpu.stops.defined() ? onGpu.stops.const_data_ptr<int32_t>()
                                : nullptr,
          onGpu.scale.defined() ? onGpu.scale.const_data_ptr<double>()
                                : nullptr);
      continue;
    }
    int64_t begin = 0;
    for (const DecayRange &range : run.ranges) {
      adamWStep<T>(optimizer, numbers, range.decays, range.end - begin,
                   gradient + begin, weight + begin, average + begin,
                   ofSquares + begin);
      begin = range.end;
    }
  }
}
