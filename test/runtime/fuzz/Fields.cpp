//===- Fields.cpp - Changes of any field of a program ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/fuzz/Fields.h"

#include "runtime/program/File.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/proof/Verify.h"
#include "test/runtime/hostile/Mutate.h"
#include "test/runtime/program/AliasedFiles.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/BucketPrograms.h"
#include "test/runtime/program/LargePrograms.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/program/TiedPrograms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

using namespace chimera;
using namespace chimera::fuzz;
using program::ProgramT;
using program::ValueKind;
using program::WorkerT;

namespace {
/// A boundary value, or a number near `old`.
uint64_t edgeNear(uint64_t old, Random &random) {
  switch (random.below(9)) {
  case 0:
    return 0;
  case 1:
    return old + 1;
  case 2:
    return old - 1;
  case 3:
    return old * 2;
  case 4:
    return old / 2;
  case 5:
    return (uint64_t(1) << random.below(64)) - random.below(2);
  case 6:
    return UINT64_MAX - random.below(3);
  case 7:
    return random.below(8);
  default:
    return old + 8 * (random.below(17) - 8);
  }
}

/// Changes a field that is an integer or an enumerator.
template <typename T> void changeNumber(T &field, Random &random) {
  field = static_cast<T>(edgeNear(static_cast<uint64_t>(field), random));
}
void changeNumber(double &field, Random &random) {
  static constexpr double kEdges[] = {0,        -0.0,      1,     -1,     NAN,
                                      INFINITY, -INFINITY, 1e308, 5e-324, 0.5};
  field = random.oneIn(2) ? kEdges[random.below(std::size(kEdges))] : 2 * field;
}
void changeNumber(bool &field, Random &) { field = !field; }

void changeText(std::string &text, Random &random) {
  switch (random.below(5)) {
  case 0:
    return text.clear();
  case 1:
    text.assign(1 + random.below(6000), "%\n\x1b\xff"[random.below(4)]);
    return;
  case 2:
    text += random.oneIn(2) ? "\xc3\x28\xe2\x82" : "\"},{\"x\":\"\n";
    return;
  default:
    text.insert(random.below(text.size() + 1), 1,
                static_cast<char>(random.next()));
  }
}

/// Overwrites an aligned word of 1, 2, 4 or 8 bytes in a struct of the program.
template <typename T> void changeStruct(T &value, Random &random) {
  size_t bytes = size_t(1) << random.below(4);
  if (bytes > sizeof(T))
    bytes = 1;
  auto *word = reinterpret_cast<unsigned char *>(&value) +
               random.below(sizeof(T) / bytes) * bytes;
  uint64_t number = 0;
  std::memcpy(&number, word, bytes);
  number = edgeNear(number, random);
  std::memcpy(word, &number, bytes);
}

template <typename T> T copyOf(const T &entry) { return entry; }
template <typename T>
std::unique_ptr<T> copyOf(const std::unique_ptr<T> &entry) {
  return entry ? std::make_unique<T>(*entry) : nullptr;
}

template <typename T> void changeList(std::vector<T> &list, Random &random) {
  if (list.empty())
    return;
  auto at = list.begin() + static_cast<ptrdiff_t>(random.below(list.size()));
  switch (random.below(3)) {
  case 0:
    list.erase(at);
    return;
  case 1:
    return std::swap(*at, random.any(list));
  default:
    list.insert(list.begin() +
                    static_cast<ptrdiff_t>(random.below(list.size() + 1)),
                copyOf(*at));
  }
}

/// Changes an entry of a list of numbers or structs, or the list itself.
template <typename T> void changeEntries(std::vector<T> &list, Random &random) {
  if (list.empty() || random.oneIn(4))
    return changeList(list, random);
  if constexpr (std::is_class_v<T>)
    changeStruct(random.any(list), random);
  else
    changeNumber(random.any(list), random);
}

/// Moves the buffers, except stashes, so that no two of them overlap. Keeps
/// their order.
void layOut(WorkerT &worker) {
  constexpr uint64_t kStep = program::kBufferAlignment;
  worker.arena_bytes = 0;
  for (program::Buffer &buffer : worker.buffers) {
    if (program::isStash(buffer.kind()))
      continue;
    buffer.mutate_offset(worker.arena_bytes);
    worker.arena_bytes += (buffer.bytes() + kStep - 1) / kStep * kStep;
  }
}

/// Changes the size of a kind of value at all places that state it, as if the
/// program had been compiled for other stages.
void changeSize(ProgramT &program, Random &random) {
  static constexpr ValueKind kKinds[] = {
      ValueKind::Weights,    ValueKind::OptimizerState,
      ValueKind::Stash,      ValueKind::WeightStash,
      ValueKind::Activation, ValueKind::Tokens,
      ValueKind::Labels,     ValueKind::Loss,
      ValueKind::SquaredNorm};
  static constexpr uint64_t kSizes[] = {
      0,   1,    3,       7,          8,
      9,   24,   63,      64,         65,
      100, 4096, 1048577, 1ull << 32, (1ull << 47) - 1};
  ValueKind changed = kKinds[random.below(std::size(kKinds))];
  uint64_t now = kSizes[random.below(std::size(kSizes))], old = now;
  auto replace = [&](uint64_t size) { return size == old ? now : size; };
  if (!program.stages.empty()) {
    const program::Stage &stage = random.any(program.stages);
    old = changed == ValueKind::Weights          ? stage.weights_bytes()
          : changed == ValueKind::OptimizerState ? stage.optimizer_bytes()
          : changed == ValueKind::Stash          ? stage.stash_bytes()
          : changed == ValueKind::WeightStash    ? stage.weight_stash_bytes()
                                                 : stage.boundary_bytes();
  }
  for (program::Stage &stage : program.stages) {
    if (changed == ValueKind::Weights)
      stage.mutate_weights_bytes(replace(stage.weights_bytes()));
    if (changed == ValueKind::OptimizerState)
      stage.mutate_optimizer_bytes(replace(stage.optimizer_bytes()));
    if (changed == ValueKind::Stash)
      stage.mutate_stash_bytes(replace(stage.stash_bytes()));
    if (changed == ValueKind::WeightStash)
      stage.mutate_weight_stash_bytes(replace(stage.weight_stash_bytes()));
    if (changed == ValueKind::Activation)
      stage.mutate_boundary_bytes(replace(stage.boundary_bytes()));
  }
  for (auto &worker : program.workers) {
    for (program::Buffer &buffer : worker->buffers) {
      ValueKind kind = buffer.kind();
      bool isOther =
          changed == ValueKind::Weights
              ? kind == ValueKind::WeightGradient
              : changed == ValueKind::Activation && kind == ValueKind::Gradient;
      if (kind != changed && !isOther)
        continue;
      // No stage states the sizes of tokens, labels, losses and norms, so these
      // may have any size.
      bool isFree =
          changed == ValueKind::Tokens || changed == ValueKind::Labels ||
          changed == ValueKind::Loss || changed == ValueKind::SquaredNorm;
      if (isFree || buffer.bytes() == old)
        buffer.mutate_bytes(now);
      else if (old == 0 || buffer.bytes() == 0)
        continue;
      else if (buffer.bytes() % old == 0)
        buffer.mutate_bytes(buffer.bytes() / old * now);
      else if (old % buffer.bytes() == 0)
        buffer.mutate_bytes(now / (old / buffer.bytes()));
    }
    layOut(*worker);
  }
}

/// A GPT-2 of small sizes, with one size that may be any.
std::unique_ptr<program::PackageT> someGpt2(program::DataType type,
                                            Random &random) {
  auto upTo = [&](uint64_t most) {
    return 1 + static_cast<uint32_t>(random.below(most));
  };
  program::Gpt2Sizes sizes{.layers = upTo(4),
                           .heads = upTo(2),
                           .width = 8,
                           .context = upTo(8),
                           .vocabulary = upTo(20),
                           .tied = random.oneIn(2)};
  uint32_t *each[] = {&sizes.layers, &sizes.heads, &sizes.width, &sizes.context,
                      &sizes.vocabulary};
  changeNumber(*each[random.below(std::size(each))], random);
  std::string error;
  return program::gpt2Package(sizes, type, error);
}

/// Changes the model. test/runtime/model/graph/graph-mutants.cpp changes
/// graphs.
void changeModel(ProgramT &program, Random &random) {
  program::PackageT *model = program.model.get();
  if (!model || model->layers.empty() || random.oneIn(2)) {
    program.model = someGpt2(program.activation_type, random);
    return;
  }
  auto &layer = model->layers[random.below(model->layers.size())];
  switch (random.below(7)) {
  case 0:
    return program.model.reset();
  case 1:
    return changeNumber(layer->kind, random);
  case 2:
    return changeText(layer->path, random);
  case 3:
    return changeList(model->layers, random);
  case 4:
    return changeList(model->kinds, random);
  case 5:
    return changeNumber(model->type, random);
  default:
    return changeText(model->producer, random);
  }
}

void changeTraining(ProgramT &program, Random &random) {
  program::OptimizerT &optimizer = *program.optimizer;
  double *numbers[] = {&optimizer.learning_rate, &optimizer.beta1,
                       &optimizer.beta2,         &optimizer.epsilon,
                       &optimizer.weight_decay,  &optimizer.min_lr,
                       &optimizer.momentum,      &optimizer.clip_norm};
  uint64_t *steps[] = {&optimizer.warmup, &optimizer.decay_steps,
                       &optimizer.lr_steps};
  switch (random.below(14)) {
  case 13:
    optimizer.no_muon.assign(random.below(3), "*mlp*");
    return;
  case 12:
    optimizer.lr_schedule = program::RateSchedule(random.below(5));
    return;
  case 11:
    return changeNumber(optimizer.nesterov, random);
  case 10:
    return changeNumber(*steps[random.below(std::size(steps))], random);
  case 9:
    return changeNumber(program.activation_type, random);
  case 0:
    return changeNumber(program.weight_type, random);
  case 1:
    return changeNumber(program.micro_batch_size, random);
  case 2:
    return changeNumber(program.seed, random);
  case 3:
    return changeNumber(program.micro_batches, random);
  case 4:
    return changeNumber(program.data_parallel, random);
  case 5:
    program.updates = program::Updates(random.below(4));
    return;
  case 6:
    program.message_model = program::MessageModel(random.below(6));
    return;
  case 7:
    return changeNumber(program.buffer_alignment, random);
  default:
    changeNumber(*numbers[random.below(std::size(numbers))], random);
  }
}

void changeTexts(ProgramT &program, Random &random) {
  std::string *texts[] = {&program.producer, &program.name, &program.schedule,
                          &program.time_unit, &program.optimizer->name};
  if (!program.files.empty() && random.oneIn(2))
    changeText(random.any(program.files), random);
  else if (random.oneIn(2))
    changeEntries(program.locations, random);
  else
    changeText(*texts[random.below(std::size(texts))], random);
}

void changeTied(ProgramT &program, Random &random) {
  if (!program.tied)
    program.tied = std::make_unique<program::Tied>(0, 0, 8);
  else if (random.oneIn(8))
    program.tied.reset();
  else
    changeStruct(*program.tied, random);
}

void changePipelines(ProgramT &program, Random &random) {
  if (program.pipelines.empty() || random.oneIn(6))
    return changeList(program.pipelines, random);
  program::PipelineT &pipeline = *random.any(program.pipelines);
  switch (random.below(5)) {
  case 0:
    pipeline.direction = program::Direction(random.below(3));
    return;
  case 1:
    return changeEntries(pipeline.workers, random);
  case 2:
    return changeEntries(pipeline.micro_batches, random);
  case 3:
    if (pipeline.forwards.empty())
      pipeline.forwards.assign(pipeline.micro_batches.size(), 1);
    return changeEntries(pipeline.forwards, random);
  default:
    changeNumber(pipeline.backward_parts, random);
  }
}

void changeCommunicators(ProgramT &program, Random &random) {
  if (program.communicators.empty() || random.oneIn(4))
    return changeList(program.communicators, random);
  program::CommunicatorT &communicator = *random.any(program.communicators);
  if (random.oneIn(6))
    communicator.kind = ValueKind(random.below(11));
  else
    changeEntries(communicator.contributions, random);
}

void changeWorkers(ProgramT &program, Random &random) {
  if (program.workers.empty() || random.oneIn(12))
    return changeList(program.workers, random);
  WorkerT &worker = *random.any(program.workers);
  uint64_t *sizes[] = {&worker.arena_bytes, &worker.peak_bytes,
                       &worker.memory_cap};
  uint32_t *indices[] = {&worker.body_begin, &worker.body_end,
                         &worker.peak_instruction};
  switch (random.below(8)) {
  case 0:
    return changeNumber(*sizes[random.below(std::size(sizes))], random);
  case 1:
    return changeNumber(*indices[random.below(std::size(indices))], random);
  case 2:
    return changeEntries(worker.operands, random);
  case 3:
    return changeEntries(worker.states, random);
  case 4:
    return changeEntries(worker.buffers, random);
  case 5: {
    // Adds a buffer that no instruction uses, near a random buffer of the
    // arena.
    if (worker.buffers.empty())
      return;
    program::Buffer buffer = random.any(worker.buffers);
    buffer.mutate_offset(edgeNear(buffer.offset(), random));
    buffer.mutate_bytes(edgeNear(buffer.bytes(), random));
    worker.buffers.push_back(buffer);
    uint64_t end = buffer.offset() + buffer.bytes();
    worker.arena_bytes = std::max(worker.arena_bytes, end);
    return;
  }
  default:
    changeEntries(worker.instructions, random);
  }
}

/// A number between 1 and `most`, with a uniformly distributed logarithm. So
/// small numbers are frequent.
uint32_t anySize(Random &random, uint32_t most) {
  double exponent = static_cast<double>(random.below(1000)) / 1000;
  return static_cast<uint32_t>(std::pow(most, exponent));
}

ProgramT sampleOfAnyKind(Random &random) {
  using program::SampleOptions;
  SampleOptions options{.workers = 1 + anySize(random, 4),
                        .microBatches = anySize(random, 12),
                        .splitBackward = random.oneIn(2),
                        .firstBackwardOverwrites = random.oneIn(2),
                        .dataParallel = anySize(random, 3)};
  switch (random.below(5)) {
  case 0:
    options.microBatches = std::max(options.workers, options.microBatches);
    return program::sampleAsynchronous(
        options, random.oneIn(2) ? program::Updates::EachMicroBatch
                                 : program::Updates::EachStep);
  case 1:
    options.workers = std::max(options.workers, 2u);
    return program::sampleTied(options, 8 * anySize(random, 15),
                               random.oneIn(2));
  case 2:
    return program::sampleInBuckets(options);
  default:
    break;
  }
  options.bidirectional = random.oneIn(2);
  options.secondPipelineShift =
      options.bidirectional && random.oneIn(3) ? 1 : 0;
  options.doubledForwards = random.oneIn(3);
  options.backwardParts = random.oneIn(3) ? 2 : 1;
  options.recompute = SampleOptions::Recompute(random.below(3));
  options.idlePipelines = random.oneIn(4) ? anySize(random, 4) : 0;
  options.ofModel = options.workers > 2 && random.oneIn(3);
  return program::samplePipeline(options);
}

ProgramT largeProgram(Random &random) {
  constexpr uint32_t kLarge = 5000;
  switch (random.below(6)) {
  case 0:
    return program::manyPipelines(anySize(random, kLarge / 2),
                                  anySize(random, kLarge / 2));
  case 1:
    return program::manyMembers(anySize(random, kLarge));
  case 2:
    return program::largeGroup(anySize(random, kLarge));
  case 3:
    return program::longCycle(1 + anySize(random, 2 * kLarge));
  case 4:
    return program::crossedCycles(2 + anySize(random, kLarge));
  default:
    return program::manyWaiters(1 + anySize(random, kLarge));
  }
}
} // namespace

void chimera::fuzz::makeRandomChange(ProgramT &program, Random &random) {
  switch (random.below(20)) {
  case 0:
    return changeModel(program, random);
  case 1:
    return changeTraining(program, random);
  case 2:
    return changeTexts(program, random);
  case 3:
    return changeTied(program, random);
  case 4:
    return changeEntries(program.stages, random);
  case 5:
    return changePipelines(program, random);
  case 6:
    return changeCommunicators(program, random);
  case 7:
  case 8:
    return changeSize(program, random);
  case 9:
  case 10:
  case 11:
  case 12:
  case 13:
  case 14: {
    // These changes mostly expect a program that verifyProgram accepts.
    if (program.workers.size() > 16 || !program::verifyProgram(program).empty())
      return;
    auto all = runtime::hostile::mutations();
    all[random.below(all.size())].apply(program, random);
    return;
  }
  default:
    return changeWorkers(program, random);
  }
}

std::vector<std::byte> chimera::fuzz::makeFile(Random &random) {
  switch (random.below(60)) {
  case 0:
  case 1:
    return program::serialize(largeProgram(random));
  case 2: {
    static constexpr auto kMakers = {
        program::aliasedText, program::aliasedWorker, program::aliasedPipeline,
        program::aliasedCommunicator};
    return kMakers.begin()[random.below(kMakers.size())](
        1 + anySize(random, 100000));
  }
  default:
    return program::serialize(sampleOfAnyKind(random));
  }
}
