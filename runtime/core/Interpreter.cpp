//===- Interpreter.cpp - Runs one worker's instructions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Interpreter.h"

#include "runtime/core/ArenaUse.h"
#include "runtime/core/Scale.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

namespace {
constexpr uint64_t kAlignment = 64;

bool isAction(Opcode opcode) {
  switch (opcode) {
  case Opcode::Load:
  case Opcode::Forward:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
  case Opcode::Recompute:
    return true;
  default:
    return false;
  }
}

std::byte *allocate(uint64_t bytes) {
  uint64_t size =
      std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  auto *memory = static_cast<std::byte *>(std::aligned_alloc(kAlignment, size));
  if (!memory)
    throw std::runtime_error("cannot allocate the worker's " +
                             std::to_string(bytes) + " bytes");
  // Touches every page now, so that the first step is no slower than others.
  std::memset(memory, 0, size);
  return memory;
}
} // namespace

Interpreter::Interpreter(const program::ProgramT &program,
                         const StageFactory &factory, DataSource &data,
                         Transport &transport, Status &status,
                         const Options &options)
    : program(program),
      worker(*program.workers.at(transport.rank() % program.workers.size())),
      options(options), data(data), transport(transport), status(status),
      copy(transport.rank() / static_cast<uint32_t>(program.workers.size())),
      firstRank(copy * static_cast<uint32_t>(program.workers.size())),
      scale(gradientScale(program)) {
  status.enter(Status::Starting);
  checkActions();
  arena.reset(allocate(worker.arena_bytes));
  stashes.resize(worker.buffers.size());
  requests.resize(worker.instructions.size());

  std::optional<ElementType> weightType, lossType;
  for (const program::State &state : worker.states) {
    std::unique_ptr<Stage> stage = factory(program, state.stage());
    stage->initialize(bytesOf(state.weights()),
                      bytesOf(state.optimizer_state()));
    weightType = stage->weightType();
    lossType = stage->lossType();
    stages[{state.pipeline(), state.stage()}] = std::move(stage);
  }

  auto workers = static_cast<uint32_t>(program.workers.size());
  for (const auto &communicator : program.communicators) {
    ReduceGroup group{static_cast<uint32_t>(groups.size()), {}};
    for (uint32_t c = 0; c < program.data_parallel; ++c)
      for (const program::Contribution &summand : communicator->contributions)
        group.contributions.push_back(c * workers + summand.worker());
    groups.push_back(std::move(group));
    reduceTypes.push_back(
        (communicator->kind == ValueKind::Loss ? lossType : weightType)
            .value_or(ElementType::UInt64));
  }
  arenaInUse = arenaBytesInUse(worker);
  if (options.meter)
    meterStart = options.meter->currentBytes();
}

Interpreter::~Interpreter() {
  requests.clear();
  stashes.clear();
}

void Interpreter::checkActions() const {
  for (uint32_t i = 0; i < worker.instructions.size(); ++i) {
    const Instruction &instruction = worker.instructions[i];
    if (isAction(instruction.opcode()) &&
        (instruction.micro_batches() != 1 || instruction.parts() > 1))
      throw std::invalid_argument(
          "expected actions on one whole micro-batch each, got " +
          program::describe(program,
                            transport.rank() %
                                static_cast<uint32_t>(program.workers.size()),
                            i));
  }
}

uint64_t Interpreter::stashBytes() const {
  if (!options.meter)
    return 0;
  return static_cast<uint64_t>(
      std::max<int64_t>(0, options.meter->currentBytes() - meterStart));
}

Bytes Interpreter::bytesOf(uint32_t buffer) const {
  const program::Buffer &place = worker.buffers[buffer];
  return {arena.get() + place.offset(), place.bytes()};
}

Stage &Interpreter::stageOf(const Instruction &instruction) {
  return *stages.at({instruction.pipeline(), instruction.stage()});
}

void Interpreter::run(
    uint64_t steps,
    const std::function<void(uint64_t, std::optional<Loss>)> &onStep) {
  lastStep = steps ? steps - 1 : 0;
  status.at(0, 0);
  status.enter(Status::Running);
  execute(0, worker.body_begin, 0);
  for (uint64_t step = 0; step < steps; ++step) {
    loss.reset();
    execute(worker.body_begin, worker.body_end, step);
    onStep(step, loss);
  }
  execute(worker.body_end, static_cast<uint32_t>(worker.instructions.size()),
          lastStep);
}

void Interpreter::execute(uint32_t begin, uint32_t end, uint64_t step) {
  uint64_t stashBefore = stashBytes();
  for (uint32_t index = begin; index < end; ++index) {
    const Instruction &instruction = worker.instructions[index];
    status.at(step, index);
    executeOne(instruction, index, step);
    if (index + 1 == groupEnd) {
      transport.endGroup();
      groupEnd = 0;
    }
    uint64_t stashAfter = stashBytes();
    uint64_t stash = std::max(stashBefore, stashAfter);
    peakStash = std::max(peakStash, stash);
    peak = std::max(peak, arenaInUse[index] + stash);
    stashBefore = stashAfter;
  }
  executed += end - begin;
}

void Interpreter::executeOne(const Instruction &instruction, uint32_t index,
                             uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  MicroBatch microBatch{step,
                        static_cast<uint64_t>(copy) * program.micro_batches +
                            instruction.micro_batch()};
  auto optional = [&](std::span<const uint32_t> buffers, size_t i) {
    return i < buffers.size() ? bytesOf(buffers[i]) : Bytes();
  };

  switch (instruction.opcode()) {
  case Opcode::Load:
    return data.load(instruction.kind(), microBatch, bytesOf(out[0]));
  case Opcode::ZeroGradient: {
    Bytes gradient = bytesOf(out[0]);
    std::fill(gradient.begin(), gradient.end(), std::byte(0));
    return;
  }
  case Opcode::Forward:
    stashes[out[1]] = stageOf(instruction)
                          .forward(microBatch, bytesOf(in[0]), optional(in, 2),
                                   bytesOf(in[1]), bytesOf(out[0]));
    return;
  case Opcode::Recompute: {
    const program::Stage &stage = program.stages[instruction.stage()];
    scratch.resize(std::max<uint64_t>(stage.boundary_bytes(), 8));
    bool last = instruction.stage() + size_t(1) == program.stages.size();
    Bytes output = Bytes(scratch).first(last ? 8 : stage.boundary_bytes());
    stashes[out[0]] = stageOf(instruction)
                          .forward(microBatch, bytesOf(in[0]), optional(in, 2),
                                   bytesOf(in[1]), output);
    return;
  }
  case Opcode::Backward:
    return stageOf(instruction)
        .backward(microBatch, std::move(stashes[in[0]]), bytesOf(in[1]),
                  bytesOf(in[2]), bytesOf(out[0]), optional(out, 1));
  case Opcode::InputGradient:
    stashes[out[0]] =
        stageOf(instruction)
            .inputGradient(microBatch, std::move(stashes[in[0]]),
                           bytesOf(in[1]), bytesOf(in[2]), optional(out, 1));
    return;
  case Opcode::WeightGradient:
    return stageOf(instruction)
        .weightGradient(microBatch, std::move(stashes[in[0]]), bytesOf(in[1]),
                        bytesOf(out[0]));
  case Opcode::PostSend:
    requests[index] =
        transport.postSend(rankOf(instruction.target()), bytesOf(in[0]));
    return;
  case Opcode::PostRecv:
    requests[index] =
        transport.postReceive(rankOf(instruction.target()), bytesOf(out[0]));
    return;
  case Opcode::Group:
    transport.beginGroup();
    groupEnd = index + 1 + instruction.target();
    return;
  case Opcode::Wait:
    transport.wait(std::move(requests[instruction.target()]), options.timeout);
    return finishWait(worker.instructions[instruction.target()]);
  case Opcode::AllReduceStart:
    return startAllReduce(instruction, index);
  case Opcode::OptimizerStep: {
    if (options.keepGradients && step == lastStep)
      keepGradient(instruction, bytesOf(in[2]));
    return stageOf(instruction)
        .optimizerStep(step, scale, bytesOf(in[2]), bytesOf(out[0]),
                       bytesOf(out[1]));
  }
  case Opcode::Copy:
  case Opcode::Rename:
    break;
  }
  throw std::invalid_argument(
      "expected a known opcode, got " +
      std::to_string(static_cast<unsigned>(instruction.opcode())));
}

void Interpreter::startAllReduce(const Instruction &instruction,
                                 uint32_t index) {
  std::vector<ConstBytes> contributions;
  for (uint32_t buffer : program::operandsOf(worker, instruction))
    contributions.push_back(bytesOf(buffer));
  requests[index] = transport.startAllReduce(
      groups[instruction.target()], reduceTypes[instruction.target()],
      std::move(contributions),
      bytesOf(program::resultsOf(worker, instruction)[0]));
}

void Interpreter::finishWait(const Instruction &waited) {
  if (waited.opcode() != Opcode::AllReduceStart ||
      waited.kind() != ValueKind::Loss)
    return;
  loss = readLoss(bytesOf(program::resultsOf(worker, waited)[0]),
                  reduceTypes[waited.target()],
                  static_cast<uint64_t>(program.micro_batches) *
                      program.data_parallel);
}

void Interpreter::keepGradient(const Instruction &instruction, ConstBytes sum) {
  std::vector<std::byte> &copy =
      kept[{instruction.pipeline(), instruction.stage()}];
  copy.assign(sum.begin(), sum.end());
  scaleElements(stageOf(instruction).weightType(), copy, scale);
}

Replicas Interpreter::weights() const {
  Replicas replicas;
  for (const program::State &state : worker.states)
    replicas[{state.pipeline(), state.stage()}] = bytesOf(state.weights());
  return replicas;
}

Replicas Interpreter::gradients() const {
  Replicas replicas;
  for (const auto &[key, bytes] : kept)
    replicas[key] = bytes;
  return replicas;
}
