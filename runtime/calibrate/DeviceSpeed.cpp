//===- DeviceSpeed.cpp - What computing reaches ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/DeviceSpeed.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/device/Block.h"
#include "runtime/interpreter/Status.h"
#include "runtime/program/Layers.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr uint32_t kWidth = 512, kHeads = 8, kContext = 128, kSamples = 2;

/// Bytes of the host, zeros at first.
class Memory {
public:
  explicit Memory(uint64_t bytes) : block(makeBlock(bytes)), size(bytes) {
    std::memset(block.get(), 0, bytes);
  }
  operator Bytes() const { return {block.get(), size}; }
  operator ConstBytes() const { return {block.get(), size}; }

  /// Numbers that are no zeros, which might be faster.
  void fill(double frequency) {
    auto *values = reinterpret_cast<float *>(block.get());
    for (uint64_t i = 0; i < size / sizeof(float); ++i)
      values[i] = std::sin(static_cast<float>(frequency * double(i)));
  }

private:
  Block block;
  uint64_t size;
};

/// How often `work` is done in a second, by this rank while all others do the
/// same.
template <typename Work>
double rateOf(Control &control, std::chrono::milliseconds window, int64_t ahead,
              std::chrono::milliseconds timeout, Work work) {
  work(); // which takes memory and wakes threads
  sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(20), timeout) +
             ahead);
  const int64_t begin = steadyNanoseconds();
  const int64_t most =
      std::chrono::duration_cast<std::chrono::nanoseconds>(window).count();
  int64_t took = 0;
  int count = 0;
  do {
    work();
    ++count;
    took = steadyNanoseconds() - begin;
  } while (took < most);
  return count / (static_cast<double>(took) * 1e-9);
}
} // namespace

program::ProgramT chimera::runtime::programToMeasure(uint32_t blocks) {
  program::ProgramT program;
  program.model = std::make_unique<program::ModelT>();
  program::ModelT &model = *program.model;
  model.architecture = program::kArchitectures[0];
  model.layers = blocks;
  model.heads = kHeads;
  model.width = kWidth;
  model.context = kContext;
  model.vocabulary = 256;
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = program::kAdamW;
  program.optimizer->learning_rate = 1e-3;
  program.optimizer->beta1 = 0.9;
  program.optimizer->beta2 = 0.999;
  program.optimizer->epsilon = 1e-8;
  program.micro_batch_size = kSamples;
  program.micro_batches = 1;
  program.data_parallel = 1;
  if (std::string problem = program::checkModel(model); !problem.empty())
    throw std::logic_error(problem);
  const program::Types types = program::typesOf(program);
  const auto boundary =
      static_cast<uint64_t>(program::boundaryBytes(model, types, kSamples, 0));
  uint32_t first = 0;
  for (uint32_t count : {1u, blocks, 1u}) {
    const auto bytes = static_cast<uint64_t>(program::parameterBytes(
        types, program::parameterCount(model, first, count)));
    int64_t forward = 0, input = 0, weight = 0;
    for (uint32_t layer = first; layer < first + count; ++layer) {
      const program::LayerCost cost =
          program::layerCost(model, types, kSamples, layer);
      forward += cost.forwardFlops;
      input += cost.inputGradientFlops;
      weight += cost.weightGradientFlops;
    }
    const uint64_t state = static_cast<uint64_t>(program::optimizerBytes(
        program.optimizer->name, static_cast<int64_t>(bytes)));
    program.stages.emplace_back(first, count, forward, input + weight, input,
                                weight, forward, /*update=*/0, bytes, state,
                                /*stash=*/0, /*weight stash=*/0, boundary,
                                /*copy=*/0);
    first += count;
  }
  return program;
}

uint64_t chimera::runtime::bytesToMeasure(uint32_t blocks) {
  const program::ProgramT program = programToMeasure(blocks);
  const program::Stage &stage = program.stages[1];
  // Weights, a gradient, the optimizer's state, and about as much for what a
  // forward keeps.
  return 2 * (2 * stage.weights_bytes() + stage.optimizer_bytes());
}

DeviceSpeed chimera::runtime::measureSpeed(Control &control,
                                           const program::ProgramT &program,
                                           Stage &stage,
                                           std::chrono::milliseconds window,
                                           int64_t ahead,
                                           std::chrono::milliseconds timeout) {
  const program::Stage &sizes = program.stages.at(1);
  Memory weights(sizes.weights_bytes()), state(sizes.optimizer_bytes()),
      gradient(sizes.weights_bytes()), input(sizes.boundary_bytes()),
      output(sizes.boundary_bytes()), incoming(sizes.boundary_bytes()),
      outgoing(sizes.boundary_bytes());
  stage.initialize(weights, state);
  input.fill(0.7);
  incoming.fill(0.3);
  const double layers = rateOf(control, window, ahead, timeout, [&] {
    const MicroBatch microBatch{0, 0};
    std::unique_ptr<Stash> stash =
        stage.forward(microBatch, input, {}, weights, output);
    stage.backward(microBatch, std::move(stash), incoming, weights, gradient,
                   outgoing, Sum::Begin);
  });
  uint64_t step = 0;
  const double updates = rateOf(control, window, ahead, timeout, [&] {
    stage.optimizerStep(step++, /*scale=*/1, gradient, weights, state);
  });
  // Read: gradient, weights, optimizer state; written: the latter two.
  const uint64_t moved = sizes.weights_bytes() +
                         2 * (sizes.weights_bytes() + sizes.optimizer_bytes());
  return {layers * static_cast<double>(sizes.forward() + sizes.backward()),
          updates * static_cast<double>(moved)};
}
