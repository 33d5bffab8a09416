//===- Sequential.cpp - Training without a pipeline -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Sequential.h"

#include "runtime/device/Fold.h"
#include "runtime/interpreter/NormShare.h"
#include "runtime/interpreter/Scale.h"
#include "runtime/model/Clipping.h"
#include "runtime/model/LearningRate.h"
#include "runtime/program/BackwardPieces.h"
#include "runtime/program/Layers.h"
#include "runtime/train/Tied.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using program::ValueKind;

namespace {
using Memory = std::vector<std::byte>;

/// The size in bytes of one micro-batch's tokens or labels.
uint64_t bytesLoaded(const program::ProgramT &program, ValueKind kind) {
  for (const auto &worker : program.workers)
    for (const program::Instruction &load : worker->instructions)
      if (load.opcode() == program::Opcode::Load && load.kind() == kind)
        return worker->buffers[program::resultsOf(*worker, load)[0]].bytes() /
               load.micro_batches();
  return 0;
}

/// The weight versions for schedules without a flush. Each of the program's
/// stages [first, last) reads its own version, according to program.updates.
class WeightVersions {
public:
  WeightVersions(const program::ProgramT &program, size_t first, size_t last)
      : program(program), first(first), last(last) {}

  /// Keeps a version. `newest` must have exactly one update more than the
  /// weights in the call before.
  void keep(const Memory &newest) {
    versions.push_back(newest);
    // Drop old versions. The number of updates between the version that a stage
    // reads and the newest version is at most the number of stages.
    if (versions.size() > program.stages.size() + 1) {
      versions.pop_front();
      ++oldest;
    }
  }

  const Memory &read(uint64_t step, uint64_t microBatch) {
    assembled.clear();
    // The weights of a single stage are first the parameters of all layers,
    // then their bfloat16 copies.
    auto append = [&](auto bytesOf) {
      for (size_t s = first; s < last; ++s) {
        uint64_t version = program::versionRead(
            program, static_cast<uint32_t>(s), step, microBatch);
        auto begin = versions.at(version - oldest).begin() +
                     static_cast<ptrdiff_t>(assembled.size());
        assembled.insert(
            assembled.end(), begin,
            begin + static_cast<ptrdiff_t>(bytesOf(program.stages[s])));
      }
    };
    append(program::gradientBytes);
    append([](const program::Stage &stage) { return stage.copy_bytes(); });
    return assembled;
  }

private:
  const program::ProgramT &program;
  size_t first, last; // indices of program stages
  std::deque<Memory> versions;
  uint64_t oldest = 0; // version of versions.front()
  Memory assembled;
};

struct StageMemory {
  Memory weights, optimizer, gradient;
  Memory halted; // the flag of Stage::optimizerStep; may be empty
  // The output of a whole micro-batch. Empty for the last stage, whose output
  // is a loss.
  Memory output, outputGradient;
  std::vector<std::unique_ptr<Stash>> stashes; // by part
};

/// Slice number `part` if `bytes` is cut into `parts` equal slices.
Bytes slice(Memory &bytes, uint32_t part, uint32_t parts) {
  size_t size = bytes.size() / parts;
  return Bytes(bytes).subspan(part * size, size);
}

std::vector<StageMemory> allocate(const program::ProgramT &program,
                                  size_t count) {
  std::vector<StageMemory> memory(count);
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const program::Stage &stage = program.stages[s];
    StageMemory &own = memory[std::min(s, count - 1)];
    own.weights.resize(own.weights.size() + stage.weights_bytes());
    own.optimizer.resize(own.optimizer.size() + stage.optimizer_bytes());
    own.gradient.resize(own.gradient.size() + program::gradientBytes(stage));
    if (s + 1 < count) {
      own.output.resize(stage.boundary_bytes());
      own.outputGradient.resize(stage.boundary_bytes());
    }
  }
  // A single stage stores tied parameters only once. So subtract the tied
  // parameters of the last stage, with their bfloat16 copy and optimizer state.
  // The sizes of all weights and of the optimizer state are proportional to the
  // size of the parameters.
  if (program.tied && count == 1) {
    const program::Stage &last = program.stages.back();
    uint64_t bytes = program.tied->bytes();
    const uint64_t parameters = program::gradientBytes(last);
    auto drop = [&](Memory &from, uint64_t ofStage) {
      const uint64_t unit = std::gcd(ofStage, parameters);
      from.resize(from.size() - bytes / (parameters / unit) * (ofStage / unit));
    };
    drop(memory[0].weights, last.weights_bytes());
    drop(memory[0].optimizer, last.optimizer_bytes());
    drop(memory[0].gradient, parameters);
  }
  return memory;
}

/// Replaces the gradients of both copies of tied parameters by the sum of the
/// two, as the instruction streams do before an update.
void reduceTied(const program::ProgramT &program, ElementType type,
                std::vector<StageMemory> &memory) {
  if (!program.tied || memory.size() == 1)
    return;
  Bytes first = tiedOf(program, 0, Bytes(memory.front().gradient));
  Bytes last = tiedOf(program, static_cast<uint32_t>(memory.size() - 1),
                      Bytes(memory.back().gradient));
  const std::byte *both[] = {first.data(), last.data()};
  fold(type, both, first.data(), first.size());
  std::copy(first.begin(), first.end(), last.begin());
}

/// The squared norm of the gradients of all stages.
Memory squaredNormOf(const program::ProgramT &program,
                     const std::vector<std::unique_ptr<Stage>> &stages,
                     const std::vector<StageMemory> &memory) {
  Memory sum(program::kNormBytes);
  std::vector<Memory> norms(stages.size(), sum);
  std::vector<const std::byte *> each;
  for (uint32_t s = 0; s < stages.size(); ++s) {
    // A single stage for the whole model has tied parameters only once.
    ConstBytes counted = memory[s].gradient;
    if (stages.size() > 1)
      counted = normShareOf(program, s, stages[s]->weightType(), counted);
    stages[s]->squaredNorm(counted, norms[s]);
    each.push_back(norms[s].data());
  }
  fold(stages.back()->lossType(), each, sum.data(), sum.size());
  return sum;
}

void append(Memory &whole, ConstBytes part) {
  whole.insert(whole.end(), part.begin(), part.end());
}
} // namespace

SequentialResult chimera::runtime::trainSequentially(
    const program::ProgramT &program,
    const std::vector<std::unique_ptr<Stage>> &stages, DataSource &data,
    uint64_t steps, const SequentialOptions &options) {
  const Evaluation &evaluation = options.evaluation;
  size_t count = stages.size();
  if (count != 1 && count != program.stages.size())
    throw std::invalid_argument(
        "expected " + std::to_string(program.stages.size()) +
        " stages, or one for all, got " + std::to_string(count));
  std::vector<StageMemory> memory = allocate(program, count);
  Memory tokens(bytesLoaded(program, ValueKind::Tokens));
  Memory labels(bytesLoaded(program, ValueKind::Labels));
  Memory loss(program::kLossBytes);
  program::BackwardPieces pieces(program);
  for (size_t s = 0; s < count; ++s) {
    stages[s]->initialize(memory[s].weights, memory[s].optimizer);
    memory[s].halted.resize(options.keepFinite ? kFlagBytes : 0);
  }

  bool flushes = program.updates == program::Updates::Flush;
  // Without a flush, versions of weights count from the first step and from
  // each checkpoint, because a pipeline is empty there.
  std::vector<WeightVersions> older;
  uint64_t segmentBegin = options.firstStep;
  auto beginSegment = [&](uint64_t step) {
    segmentBegin = step;
    older.clear();
    for (size_t s = 0; s < count; ++s) {
      older.emplace_back(program, s,
                         count == 1 ? program.stages.size() : s + 1);
      if (!flushes)
        older[s].keep(memory[s].weights);
    }
  };
  beginSegment(options.firstStep);

  uint64_t microBatches =
      static_cast<uint64_t>(program.micro_batches) * program.data_parallel;
  uint64_t updates = program::updatesPerStep(program);
  // The number of micro-batches per update in each copy.
  auto perUpdate = static_cast<uint32_t>(program.micro_batches / updates);
  double scale = 1;   // of the last update
  Memory squaredNorm; // of the last update; empty unless gradients are clipped
  Memory losses(loss.size() * microBatches);
  // The weights that each stage reads for the present micro-batch.
  std::vector<const Memory *> weights(count);

  auto train = [&](uint64_t step, uint64_t copy, uint32_t m, WgradMode mode) {
    uint64_t index = copy * program.micro_batches + m;
    uint32_t parts = pieces.partsOf(m);
    for (uint32_t part = 0; part < parts; ++part) {
      const MicroBatch piece{step, index, part, parts};
      data.load(ValueKind::Tokens, piece, slice(tokens, part, parts));
      data.load(ValueKind::Labels, piece, slice(labels, part, parts));
    }
    for (size_t s = 0; s < count; ++s)
      weights[s] =
          flushes ? &memory[s].weights : &older[s].read(step - segmentBegin, m);
    // As in a pipeline, the forwards of all parts come before the first
    // backward, because the backward needs the loss of the whole micro-batch.
    Memory shares(loss.size() * parts);
    for (uint32_t part = 0; part < parts; ++part)
      for (size_t s = 0; s < count; ++s) {
        bool last = s + 1 == count;
        StageMemory &own = memory[s];
        own.stashes.resize(parts);
        own.stashes[part] = stages[s]->forward(
            {step, index, part, parts},
            slice(s ? memory[s - 1].output : tokens, part, parts),
            last ? slice(labels, part, parts) : Bytes(), *weights[s],
            slice(last ? shares : own.output, part, parts));
      }
    addLossesOfParts(stages.back()->lossType(), shares, parts, loss);
    for (uint32_t part = 0; part < parts; ++part)
      for (size_t s = count; s-- > 0;)
        stages[s]->backward(
            {step, index, part, parts}, std::move(memory[s].stashes[part]),
            s + 1 == count ? Bytes(loss)
                           : slice(memory[s].outputGradient, part, parts),
            *weights[s], memory[s].gradient,
            s ? slice(memory[s - 1].outputGradient, part, parts) : Bytes(),
            part == 0 ? mode : WgradMode::Add);
    std::copy(loss.begin(), loss.end(),
              losses.begin() + static_cast<ptrdiff_t>(index * loss.size()));
  };
  auto update = [&](uint64_t number, uint64_t step, uint32_t first) {
    scale = gradientScale(program, data, step, first, perUpdate);
    reduceTied(program, stages.front()->weightType(), memory);
    const Update numbers = {.number = number,
                            .learningRate =
                                learningRateAt(*program.optimizer, steps, step),
                            .scale = scale,
                            .clipNorm = program.optimizer->clip_norm,
                            .skipNonFinite = options.skipNonFinite};
    if (numbers.clipNorm > 0)
      squaredNorm = squaredNormOf(program, stages, memory);
    for (size_t s = 0; s < count; ++s) {
      StageMemory &own = memory[s];
      if (scale != 0)
        stages[s]->optimizerStep(numbers, own.gradient, own.weights,
                                 own.optimizer, own.halted, squaredNorm);
      if (!flushes)
        older[s].keep(own.weights);
    }
  };

  auto sumOf = [&] {
    Memory sum(loss.size());
    std::vector<const std::byte *> each;
    for (uint64_t m = 0; m < microBatches; ++m)
      each.push_back(losses.data() + m * sum.size());
    fold(stages.back()->lossType(), each, sum.data(), sum.size());
    return sum;
  };
  auto evaluate = [&](uint64_t step) {
    double sum = 0, right = 0;
    for (uint64_t pass = 0; pass < evaluation.allPasses(); ++pass) {
      const ForwardMode mode = evaluation.modeOf(pass);
      for (uint64_t index = 0; index < microBatches; ++index) {
        const MicroBatch all{pass % evaluation.passes, index};
        evaluation.data->load(ValueKind::Tokens, all, tokens);
        evaluation.data->load(ValueKind::Labels, all, labels);
        for (size_t s = 0; s < count; ++s) {
          const bool last = s + 1 == count;
          stages[s]->forward(
              all, s ? memory[s - 1].output : tokens,
              last ? Bytes(labels) : Bytes(), memory[s].weights,
              last ? Bytes(losses).subspan(index * loss.size(), loss.size())
                   : Bytes(memory[s].output),
              mode);
        }
      }
      (mode == ForwardMode::Accuracy ? right : sum) +=
          readLoss(sumOf(), stages.back()->lossType(), /*weight=*/1).mean;
    }
    evaluation.onResult(step, resultOf(program, evaluation, sum, right));
  };

  SequentialResult result;
  result.halted.resize(program.stages.size());
  // Whether updates have halted. If they have, stores the step in `result`.
  auto haveHalted = [&](uint64_t step) {
    bool any = false;
    for (size_t s = 0; s < result.halted.size(); ++s) {
      const Memory &flag = memory[std::min(s, count - 1)].halted;
      if (flag.empty())
        continue;
      int32_t value;
      std::memcpy(&value, flag.data(), sizeof value);
      if (!hasHalted(value))
        continue;
      any = true;
      result.halted[s] = result.halted[s].value_or(step);
    }
    return any;
  };
  auto saveState = [&](uint64_t step) {
    SequentialOptions::States states;
    for (size_t s = 0; s < count; ++s)
      states.push_back(
          {Bytes(memory[s].weights).first(memory[s].gradient.size()),
           Bytes(memory[s].optimizer)});
    options.onCheckpoint(step, step > 0 && haveHalted(step - 1), states);
    beginSegment(step);
  };
  if (options.onCheckpoint && options.savesStart && steps == options.firstStep)
    saveState(steps);
  if (options.evaluatesStart)
    evaluate(options.firstStep);
  for (uint64_t step = options.firstStep; step < steps; ++step) {
    for (uint64_t u = 0; u < updates; ++u) {
      for (uint64_t copy = 0; copy < program.data_parallel; ++copy)
        for (uint32_t k = 0; k < perUpdate; ++k)
          train(step, copy, static_cast<uint32_t>(u * perUpdate) + k,
                copy == 0 && k == 0 ? WgradMode::Overwrite : WgradMode::Add);
      update(options.firstUpdate + (step - options.firstStep) * updates + u,
             step, static_cast<uint32_t>(u * perUpdate));
    }

    result.losses.push_back(
        readLoss(sumOf(), stages.back()->lossType(),
                 totalWeight(program, data, step, 0, program.micro_batches)));
    if (!squaredNorm.empty() &&
        stages.back()->lossType() == ElementType::Float64) {
      double square = 0;
      std::memcpy(&square, squaredNorm.data(), sizeof square);
      result.losses.back().gradientNorm = gradientNorm(square, scale);
    }
    const bool wantsMore =
        !options.onStep || options.onStep(step, result.losses.back());
    const bool goesOn = !haveHalted(step) && wantsMore;
    const bool isLast = !goesOn || step + 1 == steps;
    // Evaluate before the checkpoint: a run that continues from it begins with
    // the next step.
    if (!isLast && evaluation.isDueAfter(step + 1))
      evaluate(step + 1);
    if (options.onCheckpoint &&
        (isLast ||
         (options.checkpointEvery > 0 &&
          (step + 1) % options.checkpointEvery == 0) ||
         (options.isCheckpointWanted && options.isCheckpointWanted())))
      saveState(step + 1);
    if (!goesOn)
      break;
  }
  for (size_t s = 0; s < count; ++s) {
    scaleElements(stages[s]->weightType(), memory[s].gradient, scale);
    append(result.weights,
           Bytes(memory[s].weights).first(memory[s].gradient.size()));
    append(result.gradients, memory[s].gradient);
  }
  if (count > 1) {
    dropTiedCopy(program, result.weights);
    dropTiedCopy(program, result.gradients);
  }
  const bool evaluates = !options.onTrained || options.onTrained(result);
  if (evaluation.data && evaluates)
    evaluate(options.firstStep + result.losses.size());
  return result;
}
