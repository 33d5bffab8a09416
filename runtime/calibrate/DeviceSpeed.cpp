//===- DeviceSpeed.cpp - What computing reaches ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/DeviceSpeed.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/interpreter/Status.h"
#include "runtime/program/Layers.h"

#include <cmath>
#include <deque>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// How many pieces of work the host puts on a queue before it waits for the
/// first of them.
constexpr size_t kMostAhead = 2;

/// Writes numbers that are no zeros, which might be faster.
void fill(Queue &queue, Bytes bytes, double frequency) {
  queue.load(bytes, [&](Bytes host) {
    auto *values = reinterpret_cast<float *>(host.data());
    for (uint64_t i = 0; i < host.size() / sizeof(float); ++i)
      values[i] = std::sin(static_cast<float>(frequency * double(i)));
  });
}

/// How often `work`, which puts itself on the queue, is done in a second, by
/// this rank while all others do the same.
template <typename Work>
double rateOf(Control &control, Device &device, Queue &queue,
              std::chrono::milliseconds window, int64_t ahead,
              std::chrono::milliseconds timeout, Work work) {
  work(); // which takes memory and wakes threads
  device.waitFor(queue.record(), timeout);
  sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(20), timeout) +
             ahead);
  const int64_t begin = steadyNanoseconds();
  const int64_t most =
      std::chrono::duration_cast<std::chrono::nanoseconds>(window).count();
  std::deque<Event> ends;
  int count = 0;
  do {
    work();
    ++count;
    ends.push_back(queue.record());
    if (ends.size() > kMostAhead) {
      device.waitFor(ends.front(), timeout);
      ends.pop_front();
    }
  } while (steadyNanoseconds() - begin < most);
  device.waitFor(ends.back(), timeout);
  const int64_t took = steadyNanoseconds() - begin;
  return count / (static_cast<double>(took) * 1e-9);
}
} // namespace

program::ProgramT chimera::runtime::programToMeasure(uint32_t blocks,
                                                     const BlockSizes &sizes) {
  program::ProgramT program;
  program.model = std::make_unique<program::ModelT>();
  program::ModelT &model = *program.model;
  model.architecture = program::kArchitectures[0];
  model.layers = blocks;
  model.heads = sizes.heads;
  model.width = sizes.width;
  model.context = sizes.context;
  model.vocabulary = 256;
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = program::kAdamW;
  program.optimizer->learning_rate = 1e-3;
  program.optimizer->beta1 = 0.9;
  program.optimizer->beta2 = 0.999;
  program.optimizer->epsilon = 1e-8;
  program.micro_batch_size = sizes.samples;
  program.micro_batches = 1;
  program.data_parallel = 1;
  if (std::string problem = program::checkModel(model); !problem.empty())
    throw std::logic_error(problem);
  const program::Types types = program::typesOf(program);
  const auto boundary = static_cast<uint64_t>(
      program::boundaryBytes(model, types, sizes.samples, 0));
  uint32_t first = 0;
  for (uint32_t count : {1u, blocks, 1u}) {
    const auto bytes = static_cast<uint64_t>(program::parameterBytes(
        types, program::parameterCount(model, first, count)));
    int64_t forward = 0, input = 0, weight = 0;
    for (uint32_t layer = first; layer < first + count; ++layer) {
      const program::LayerCost cost =
          program::layerCost(model, types, sizes.samples, layer);
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

uint64_t chimera::runtime::bytesToMeasure(uint32_t blocks,
                                          const BlockSizes &sizes) {
  const program::ProgramT program = programToMeasure(blocks, sizes);
  const program::Stage &stage = program.stages[1];
  // Weights, a gradient, the optimizer's state, and about as much for what a
  // forward keeps.
  return 2 * (2 * stage.weights_bytes() + stage.optimizer_bytes());
}

DeviceSpeed chimera::runtime::measureSpeed(Control &control, Device &device,
                                           const program::ProgramT &program,
                                           Stage &stage,
                                           std::chrono::milliseconds window,
                                           int64_t ahead,
                                           std::chrono::milliseconds timeout) {
  const program::Stage &sizes = program.stages.at(1);
  std::vector<Block> blocks;
  auto allocate = [&](uint64_t bytes) {
    blocks.push_back(device.allocate(bytes));
    return Bytes(blocks.back().get(), bytes);
  };
  const Bytes weights = allocate(sizes.weights_bytes()),
              state = allocate(sizes.optimizer_bytes()),
              gradient = allocate(sizes.weights_bytes()),
              input = allocate(sizes.boundary_bytes()),
              output = allocate(sizes.boundary_bytes()),
              incoming = allocate(sizes.boundary_bytes()),
              outgoing = allocate(sizes.boundary_bytes());
  std::unique_ptr<Stash> stash;
  // Ends first: what is on it uses all of these.
  const std::unique_ptr<Queue> queue = device.makeQueue("compute");
  for (Bytes bytes : {weights, state, gradient, output, outgoing})
    queue->zero(bytes);
  queue->launch({updates(weights), updates(state)}, [&](const AddressMap &at) {
    stage.initialize(at(weights), at(state));
  });
  fill(*queue, input, 0.7);
  fill(*queue, incoming, 0.3);
  const MicroBatch microBatch{0, 0};
  const double layersRate =
      rateOf(control, device, *queue, window, ahead, timeout, [&] {
        queue->launch({reads(input), reads(weights), writes(output)},
                      [&](const AddressMap &at) {
                        stash = stage.forward(microBatch, at(input), {},
                                              at(weights), at(output));
                      });
        queue->launch({reads(incoming), reads(weights), writes(gradient),
                       writes(outgoing)},
                      [&](const AddressMap &at) {
                        stage.backward(microBatch, std::move(stash),
                                       at(incoming), at(weights), at(gradient),
                                       at(outgoing), Sum::Begin);
                      });
      });
  uint64_t step = 0;
  const double updatesRate =
      rateOf(control, device, *queue, window, ahead, timeout, [&] {
        queue->launch({reads(gradient), updates(weights), updates(state)},
                      [&, step = step++](const AddressMap &at) {
                        stage.optimizerStep(step, /*scale=*/1, at(gradient),
                                            at(weights), at(state));
                      });
      });
  // Read: gradient, weights, optimizer state; written: the latter two.
  const uint64_t moved = sizes.weights_bytes() +
                         2 * (sizes.weights_bytes() + sizes.optimizer_bytes());
  return {layersRate * static_cast<double>(sizes.forward() + sizes.backward()),
          updatesRate * static_cast<double>(moved)};
}
