//===- Sequential.cpp - Training without a pipeline -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Sequential.h"

#include "runtime/core/Scale.h"
#include "runtime/transport/Fold.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using program::ValueKind;

namespace {
using Memory = std::vector<std::byte>;

/// Bytes of the program's buffers of a kind that has one size: tokens, labels,
/// losses.
uint64_t bytesOfKind(const program::ProgramT &program, ValueKind kind) {
  for (const auto &worker : program.workers)
    for (const program::Buffer &buffer : worker->buffers)
      if (buffer.kind() == kind)
        return buffer.bytes();
  return 0;
}

struct StageMemory {
  Memory weights, optimizer, gradient;
  Memory output;         // of the forward: activation, or the loss
  Memory outputGradient; // empty for the last, which takes the loss
  std::unique_ptr<Stash> stash;
};

std::vector<StageMemory> allocate(const program::ProgramT &program,
                                  size_t count) {
  std::vector<StageMemory> memory(count);
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const program::Stage &stage = program.stages[s];
    StageMemory &own = memory[std::min(s, count - 1)];
    own.weights.resize(own.weights.size() + stage.weights_bytes());
    own.optimizer.resize(own.optimizer.size() + stage.optimizer_bytes());
    if (s + 1 < count) {
      own.output.resize(stage.boundary_bytes());
      own.outputGradient.resize(stage.boundary_bytes());
    }
  }
  for (StageMemory &own : memory)
    own.gradient.resize(own.weights.size());
  memory.back().output.resize(bytesOfKind(program, ValueKind::Loss));
  return memory;
}

void append(Memory &whole, const Memory &part) {
  whole.insert(whole.end(), part.begin(), part.end());
}
} // namespace

SequentialResult chimera::runtime::trainSequentially(
    const program::ProgramT &program,
    const std::vector<std::unique_ptr<Stage>> &stages, DataSource &data,
    uint64_t steps, const std::function<void(uint64_t, Loss)> &onStep) {
  size_t count = stages.size();
  if (count != 1 && count != program.stages.size())
    throw std::invalid_argument(
        "expected " + std::to_string(program.stages.size()) +
        " stages, or one for all, got " + std::to_string(count));
  std::vector<StageMemory> memory = allocate(program, count);
  Memory tokens(bytesOfKind(program, ValueKind::Tokens));
  Memory labels(bytesOfKind(program, ValueKind::Labels));
  for (size_t s = 0; s < count; ++s)
    stages[s]->initialize(memory[s].weights, memory[s].optimizer);

  uint64_t microBatches =
      static_cast<uint64_t>(program.micro_batches) * program.data_parallel;
  Memory losses;
  double scale = gradientScale(program);
  SequentialResult result;
  for (uint64_t step = 0; step < steps; ++step) {
    losses.clear();
    for (StageMemory &own : memory)
      std::fill(own.gradient.begin(), own.gradient.end(), std::byte(0));
    for (uint64_t m = 0; m < microBatches; ++m) {
      MicroBatch microBatch{step, m};
      data.load(ValueKind::Tokens, microBatch, tokens);
      data.load(ValueKind::Labels, microBatch, labels);
      for (size_t s = 0; s < count; ++s)
        memory[s].stash = stages[s]->forward(
            microBatch, s ? memory[s - 1].output : tokens,
            s + 1 == count ? ConstBytes(labels) : ConstBytes(),
            memory[s].weights, memory[s].output);
      append(losses, memory.back().output);
      for (size_t s = count; s-- > 0;)
        stages[s]->backward(microBatch, std::move(memory[s].stash),
                            s + 1 == count ? memory[s].output
                                           : memory[s].outputGradient,
                            memory[s].weights, memory[s].gradient,
                            s ? Bytes(memory[s - 1].outputGradient) : Bytes());
    }

    ElementType type = stages.back()->lossType();
    Memory sum(memory.back().output.size());
    std::vector<const std::byte *> each;
    for (uint64_t m = 0; m < microBatches; ++m)
      each.push_back(losses.data() + m * sum.size());
    fold(type, each, sum.data(), sum.size());
    result.losses.push_back(readLoss(sum, type, microBatches));

    for (size_t s = 0; s < count; ++s) {
      StageMemory &own = memory[s];
      stages[s]->optimizerStep(step, scale, own.gradient, own.weights,
                               own.optimizer);
    }
    if (onStep)
      onStep(step, result.losses.back());
  }
  for (size_t s = 0; s < count; ++s) {
    scaleElements(stages[s]->weightType(), memory[s].gradient, scale);
    append(result.weights, memory[s].weights);
    append(result.gradients, memory[s].gradient);
  }
  return result;
}
