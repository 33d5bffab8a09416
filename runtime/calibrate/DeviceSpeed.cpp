//===- DeviceSpeed.cpp - Speed of computation -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/DeviceSpeed.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Status.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Optimizer.h"
#include "runtime/system/Deadline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The host may enqueue this number of calls of `work` before it waits for the
/// oldest call.
constexpr size_t kMaxStepsAhead = 2;

/// Fills memory with values of the type. Most values are not zero, because a
/// computation with zeros might be faster.
void fill(Queue &queue, Bytes bytes, program::DataType type, double frequency) {
  queue.loadFromHost(bytes, [&](Bytes host) {
    const bool isHalf = type == program::DataType::BFloat16;
    const uint64_t width = isHalf ? 2 : sizeof(float);
    for (uint64_t i = 0; i < host.size() / width; ++i) {
      const float value = std::sin(static_cast<float>(frequency * double(i)));
      // For bfloat16, copy only the upper half of the float32.
      std::memcpy(host.data() + i * width,
                  reinterpret_cast<const std::byte *>(&value) + sizeof(value) -
                      width,
                  width);
    }
  });
}

/// The number of completed calls of `work` per second at this rank, while all
/// other ranks do the same. `work` enqueues operations on `queue`.
template <typename Work>
double rateOf(Control &control, Device &device, Queue &queue,
              std::chrono::milliseconds window, int64_t clockAhead,
              std::chrono::milliseconds timeout, Work work) {
  work(); // the first call allocates memory and wakes threads
  device.waitFor(queue.record(), timeout);
  sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(20), timeout) +
             clockAhead);
  const int64_t begin = steadyNanoseconds();
  const int64_t most =
      std::chrono::duration_cast<std::chrono::nanoseconds>(window).count();
  std::deque<Event> ends;
  int count = 0;
  do {
    work();
    ++count;
    ends.push_back(queue.record());
    if (ends.size() > kMaxStepsAhead) {
      device.waitFor(ends.front(), timeout);
      ends.pop_front();
    }
  } while (steadyNanoseconds() - begin < most);
  device.waitFor(ends.back(), timeout);
  const int64_t took = steadyNanoseconds() - begin;
  return count / (static_cast<double>(took) * 1e-9);
}
} // namespace

program::ProgramT
chimera::runtime::programToMeasure(uint32_t blocks, const BlockSizes &sizes,
                                   program::DataType activations) {
  program::ProgramT program;
  program.activation_type = activations;
  std::string error;
  program.model = program::gpt2Package({.layers = blocks,
                                        .heads = sizes.heads,
                                        .width = sizes.width,
                                        .context = sizes.context,
                                        .vocabulary = 256},
                                       activations, error);
  if (!program.model)
    throw std::logic_error(error);
  const program::PackageT &model = *program.model;
  program.optimizer = std::make_unique<program::OptimizerT>();
  program.optimizer->name = program::kAdamW;
  program.optimizer->beta1 = 0.9;
  program.optimizer->beta2 = 0.999;
  program.optimizer->epsilon = 1e-8;
  program.micro_batch_size = sizes.samples;
  program.micro_batches = 1;
  program.data_parallel = 1;
  const program::Types types = program::typesOf(program);
  const auto boundary =
      static_cast<uint64_t>(program::boundaryBytes(model, sizes.samples, 0));
  uint32_t first = 0;
  for (uint32_t count : {1u, blocks, 1u}) {
    const int64_t elements = program::parameterCount(model, first, count);
    const auto bytes =
        static_cast<uint64_t>(program::parameterBytes(types, elements));
    const auto copy =
        static_cast<uint64_t>(program::copyBytes(types, elements));
    int64_t forward = 0, input = 0, weight = 0;
    for (uint32_t layer = first; layer < first + count; ++layer) {
      const program::LayerCost cost =
          program::layerCost(model, sizes.samples, layer);
      forward += cost.forwardFlops;
      input += cost.inputGradientFlops;
      weight += cost.weightGradientFlops;
    }
    const auto state = static_cast<uint64_t>(program::optimizerBytes(
        *program.optimizer, model, types, first, count));
    program.stages.emplace_back(first, count, forward, input + weight, input,
                                weight, forward, /*update=*/0, bytes + copy,
                                state, /*stash=*/0, /*weight stash=*/0,
                                boundary, copy);
    first += count;
  }
  return program;
}

uint64_t chimera::runtime::bytesToMeasure(uint32_t blocks,
                                          const BlockSizes &sizes) {
  const program::ProgramT program = programToMeasure(blocks, sizes);
  const program::Stage &stage = program.stages[1];
  // The first half is for weights, a gradient and the optimizer's state. The
  // second half is an estimate for the values that a forward saves.
  return 2 * (2 * stage.weights_bytes() + stage.optimizer_bytes());
}

namespace {
/// The blocks of a program to measure, and their device memory: weights,
/// optimizer state, gradient, activations, and gradients of activations.
class MeasuredBlocks {
public:
  MeasuredBlocks(Device &device, const program::ProgramT &program, Stage &stage)
      : device(device), stage(stage) {
    const program::Stage &sizes = program.stages.at(1);
    auto allocate = [&](uint64_t bytes) {
      blocks.push_back(device.allocate(bytes));
      return Bytes(blocks.back().get(), bytes);
    };
    weights = allocate(sizes.weights_bytes());
    state = allocate(sizes.optimizer_bytes());
    gradient = allocate(program::gradientBytes(sizes));
    input = allocate(sizes.boundary_bytes());
    output = allocate(sizes.boundary_bytes());
    incoming = allocate(sizes.boundary_bytes());
    outgoing = allocate(sizes.boundary_bytes());
    queue = device.makeQueue("compute");
    for (Bytes bytes : {weights, state, gradient, output, outgoing})
      queue->zero(bytes);
    queue->launch({updates(weights), updates(state)},
                  [this](const AddressMap &at) {
                    this->stage.initialize(at(weights), at(state));
                  });
    const program::DataType type = program::typesOf(program).activations;
    fill(*queue, input, type, 0.7);
    fill(*queue, incoming, type, 0.3);
  }

  /// Enqueues a forward and its backward.
  void compute() {
    const MicroBatch microBatch{0, 0};
    queue->launch({reads(input), reads(weights), writes(output)},
                  [=, this](const AddressMap &at) {
                    stash = stage.forward(microBatch, at(input), {},
                                          at(weights), at(output));
                  });
    queue->launch(
        {reads(incoming), reads(weights), writes(gradient), writes(outgoing)},
        [=, this](const AddressMap &at) {
          stage.backward(microBatch, std::move(stash), at(incoming),
                         at(weights), at(gradient), at(outgoing),
                         WgradMode::Overwrite);
        });
  }

  void update() {
    queue->launch({reads(gradient), updates(weights), updates(state)},
                  [this, step = step++](const AddressMap &at) {
                    stage.optimizerStep({step, 1e-3, 1}, at(gradient),
                                        at(weights), at(state));
                  });
  }

  void wait(std::chrono::milliseconds timeout) {
    device.waitFor(queue->record(), timeout);
  }

  Queue &work() { return *queue; }

private:
  Device &device;
  Stage &stage;
  std::vector<Block> blocks;
  Bytes weights, state, gradient, input, output, incoming, outgoing;
  std::unique_ptr<Stash> stash;
  uint64_t step = 0;
  // Must be the last member, so that it is destroyed first: its operations use
  // the other members.
  std::unique_ptr<Queue> queue;
};
} // namespace

DeviceSpeed chimera::runtime::measureSpeed(Control &control, Device &device,
                                           const program::ProgramT &program,
                                           Stage &stage,
                                           std::chrono::milliseconds window,
                                           int64_t clockAhead,
                                           std::chrono::milliseconds timeout) {
  const program::Stage &sizes = program.stages.at(1);
  MeasuredBlocks blocks(device, program, stage);
  const double layersRate =
      rateOf(control, device, blocks.work(), window, clockAhead, timeout,
             [&] { blocks.compute(); });
  const double updatesRate =
      rateOf(control, device, blocks.work(), window, clockAhead, timeout,
             [&] { blocks.update(); });
  // An update reads the gradient, the weights and the optimizer state, and
  // writes the weights and the optimizer state.
  const uint64_t moved = sizes.weights_bytes() +
                         2 * (sizes.weights_bytes() + sizes.optimizer_bytes());
  return {layersRate * static_cast<double>(sizes.forward() + sizes.backward()),
          updatesRate * static_cast<double>(moved)};
}

BlockSizes chimera::runtime::blockLike(const program::PackageT &model) {
  // These limits are large enough for the speed of long matrix products. Larger
  // blocks would take seconds.
  constexpr uint32_t kMaxWidth = 256, kMaxContext = 128;
  BlockSizes sizes{kMaxWidth, 4, kMaxContext, 1};
  const std::vector<int64_t> &boundary =
      program::graphsOf(model, 0).outputs.at(0)->shape;
  // The constant of a dimension that depends on the number of samples may be 0.
  if (boundary.size() != 3 || boundary[1] < 1 || boundary[2] < 1)
    return sizes;
  sizes.context =
      static_cast<uint32_t>(std::min<int64_t>(boundary[1], kMaxContext));
  sizes.width =
      static_cast<uint32_t>(std::min<int64_t>(boundary[2], kMaxWidth));
  if (sizes.width % sizes.heads != 0)
    sizes.heads = 1;
  return sizes;
}

double chimera::runtime::relativeTimeOfType(const program::ProgramT &program,
                                            const StageFactory &stages) {
  const BlockSizes sizes = blockLike(*program.model);
  const std::unique_ptr<Device> device = makeHostDevice();
  struct Case {
    program::ProgramT program;
    std::unique_ptr<Stage> stage;
    MeasuredBlocks blocks;
    double least = std::numeric_limits<double>::infinity();

    Case(Device &device, const BlockSizes &sizes, program::DataType type,
         const StageFactory &stages)
        : program(programToMeasure(1, sizes, type)), stage(stages(program, 1)),
          blocks(device, program, *stage) {}
  };
  Case plain(*device, sizes, program::DataType::Float32, stages),
      asked(*device, sizes, program::typesOf(program).activations, stages);
  // Alternate between the two cases, because the machine may have other work.
  // The first round also allocates memory and wakes threads.
  constexpr int kRounds = 6;
  constexpr int64_t kEnough = 400'000'000; // ns
  const int64_t begin = steadyNanoseconds();
  for (int round = 0;
       round < kRounds && (round < 2 || steadyNanoseconds() < begin + kEnough);
       ++round)
    for (Case *each : {&plain, &asked}) {
      const int64_t start = steadyNanoseconds();
      each->blocks.compute();
      each->blocks.wait(kForever);
      each->least = std::min(each->least,
                             static_cast<double>(steadyNanoseconds() - start));
    }
  return asked.least / plain.least;
}

std::string chimera::runtime::noteOfSlowType(program::DataType type,
                                             double slowness) {
  // A smaller factor may be caused by other work of the machine, so there is no
  // note.
  constexpr double kMuch = 2;
  if (!(slowness > kMuch))
    return {};
  char times[32];
  std::snprintf(times, sizeof(times), "%.1f", slowness);
  return std::string("a transformer block takes ") + times +
         " times as long in " + program::nameOf(type) + " as in " +
         program::nameOf(program::DataType::Float32) +
         " on this processor: compute in " +
         program::nameOf(program::DataType::Float32) +
         " unless you need the memory";
}
