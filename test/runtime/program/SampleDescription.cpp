//===- SampleDescription.cpp - Samples without instructions ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/SampleDescription.h"

#include "runtime/program/Layers.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace chimera::program {

namespace {

class Description {
public:
  explicit Description(SampleOptions &options)
      : options(options), stages(stagesOf(options)) {}

  ProgramT make() {
    describe();
    if (options.ofModel)
      describeModel();
    return std::move(program);
  }

private:
  void describe() {
    program.producer = "samplePipeline";
    program.name = options.bidirectional ? "bidirectional" : "one-way";
    program.schedule = options.bidirectional ? "sample-bidirectional" : "gpipe";
    program.optimizer = std::make_unique<OptimizerT>();
    program.optimizer->name = "adamw";
    program.optimizer->learning_rate = 1e-3;
    program.optimizer->beta1 = 0.9;
    program.optimizer->beta2 = 0.999;
    program.optimizer->epsilon = 1e-8;
    program.optimizer->clip_norm = options.clips ? 1 : 0;
    program.weight_type = program.activation_type = DataType::Float64;
    program.micro_batch_size = 1;
    program.seed = 1;
    program.time_unit = "slot";
    program.micro_batches = options.microBatches;
    program.data_parallel = options.dataParallel;
    program.files = {"sample.mlir"};
    for (uint32_t s = 0; s < stages; ++s) {
      program.stages.emplace_back(
          s, 1, 1, 2, 1, 1, 1, 0, options.weightsBytes + 8 * s,
          options.optimizerBytes + 16 * s, options.stashBytes,
          options.weightStashBytes, options.boundaryBytes, 0);
      // The source location of the instructions of stage s is in line s+1.
      program.locations.emplace_back(0, s + 1, 3);
    }
    for (uint32_t w = 0; w < options.workers; ++w)
      program.workers.push_back(std::make_unique<WorkerT>());
    uint32_t down = options.bidirectional ? (options.microBatches + 1) / 2
                                          : options.microBatches;
    addPipeline(Direction::Down, 0, 0, down);
    if (options.bidirectional)
      addPipeline(options.secondPipelineShift ? Direction::Down : Direction::Up,
                  options.secondPipelineShift, down, options.microBatches);
    for (uint32_t p = 0; p < options.idlePipelines; ++p)
      addPipeline(Direction::Down, p + 1, 0, 0);
  }

  void describeModel() {
    const Types types = typesOf(program);
    setGpt2(program, gpt2Of(options));
    const PackageT &model = *program.model;
    program.micro_batch_size = options.backwardParts;
    options.tokenBytes =
        static_cast<uint64_t>(inputBytes(model, program.micro_batch_size));
    options.boundaryBytes = static_cast<uint64_t>(
        program::boundaryBytes(model, program.micro_batch_size, 0));
    for (uint32_t s = 0; s < options.workers; ++s) {
      int64_t weights = parameterBytes(types, parameterCount(model, s, 1));
      Stage &stage = program.stages[s];
      stage.mutate_weights_bytes(static_cast<uint64_t>(weights));
      stage.mutate_optimizer_bytes(2 * static_cast<uint64_t>(weights));
      stage.mutate_boundary_bytes(options.boundaryBytes);
    }
  }

  void addPipeline(Direction direction, uint32_t turn, uint32_t first,
                   uint32_t last) {
    auto pipeline = std::make_unique<PipelineT>();
    pipeline->direction = direction;
    for (uint32_t s = 0; s < stages; ++s)
      pipeline->workers.push_back(direction == Direction::Up
                                      ? options.workers - 1 - s
                                      : (s + turn) % options.workers);
    for (uint32_t m = first; m < last; ++m)
      pipeline->micro_batches.push_back(m);
    if (options.doubledForwards)
      for (uint32_t m = first; m < last; m += 2)
        pipeline->forwards.push_back(std::min(2u, last - m));
    pipeline->backward_parts = options.backwardParts;
    program.pipelines.push_back(std::move(pipeline));
  }

  SampleOptions &options;
  const uint32_t stages; ///< of each pipeline
  ProgramT program;
};

} // namespace

ProgramT describeSample(SampleOptions &options) {
  return Description(options).make();
}

} // namespace chimera::program
