//===- Program.cpp - The program in memory --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Program.h"

#include <iterator>

namespace chimera::program {

namespace {

constexpr const char *kOpcodeNames[] = {
    "load",         "zero_gradient",  "forward",
    "backward",     "input_gradient", "weight_gradient",
    "recompute",    "post_send",      "post_recv",
    "group",        "wait",           "all_reduce_start",
    "squared_norm", "optimizer_step", "copy",
    "rename",       "split",          "join"};
static_assert(std::size(kOpcodeNames) == size_t(Opcode::MAX) + 1);

constexpr const char *kKindNames[] = {
    "tokens",          "labels",          "activation",  "gradient",
    "stash",           "weight stash",    "loss",        "weights",
    "weight gradient", "optimizer state", "squared norm"};
static_assert(std::size(kKindNames) == size_t(ValueKind::MAX) + 1);

constexpr const char *kModelNames[] = {"rendezvous", "buffered",
                                       "stream-per-direction",
                                       "stream-per-pair", "stream-per-device"};
static_assert(std::size(kModelNames) == size_t(MessageModel::MAX) + 1);

std::string number(uint64_t value) { return std::to_string(value); }

std::string replica(const Instruction &instruction) {
  return " pipeline " + number(instruction.pipeline()) + " stage " +
         number(instruction.stage());
}

std::string microBatches(const Instruction &instruction) {
  uint64_t first = instruction.micro_batch();
  std::string text;
  if (instruction.micro_batches() > 1)
    text = " micro-batches " + number(first) + " to " +
           number(first + instruction.micro_batches() - 1);
  else
    text = " micro-batch " + number(first);
  if (instruction.parts() > 1)
    text += " part " + number(instruction.part()) + " of " +
            number(instruction.parts());
  return text;
}

std::string describeOne(const WorkerT &worker, const Instruction &instruction,
                        bool follow) {
  std::string text = nameOf(instruction.opcode());
  std::string kind = std::string(" ") + nameOf(instruction.kind());
  uint32_t target = instruction.target();
  switch (instruction.opcode()) {
  case Opcode::Load:
    return text + kind + replica(instruction) + microBatches(instruction);
  case Opcode::ZeroGradient:
  case Opcode::SquaredNorm:
  case Opcode::Split:
  case Opcode::Join:
    return text + replica(instruction);
  case Opcode::Copy:
    return text + kind + replica(instruction);
  case Opcode::Rename:
    return text;
  case Opcode::Forward:
  case Opcode::Backward:
  case Opcode::InputGradient:
  case Opcode::WeightGradient:
  case Opcode::Recompute:
  case Opcode::OptimizerStep:
    return text + replica(instruction) + microBatches(instruction);
  case Opcode::PostSend:
    return text + kind + replica(instruction) + microBatches(instruction) +
           " to worker " + number(target);
  case Opcode::PostRecv:
    return text + kind + replica(instruction) + microBatches(instruction) +
           " from worker " + number(target);
  case Opcode::Group:
    return text + " of " + number(target) + " posts";
  case Opcode::Wait:
    // A wait for another wait is malformed. Do not follow it, because the waits
    // could refer to each other in a cycle.
    if (!follow || target >= worker.instructions.size())
      return text + " for instruction " + number(target);
    return text + " for " +
           describeOne(worker, worker.instructions[target], false);
  case Opcode::AllReduceStart:
    text += kind;
    if (instruction.kind() == ValueKind::WeightGradient)
      text += " stage " + number(instruction.stage());
    if (instruction.micro_batches() > 1)
      text += " bucket " + number(instruction.micro_batch()) + " of " +
              number(instruction.micro_batches());
    return text + " communicator " + number(target);
  }
  return text + " opcode " + number(uint64_t(instruction.opcode()));
}

} // namespace

std::span<const uint32_t> operandsOf(const WorkerT &worker,
                                     const Instruction &instruction) {
  return {worker.operands.data() + instruction.first_operand(),
          instruction.operands()};
}

std::span<const uint32_t> resultsOf(const WorkerT &worker,
                                    const Instruction &instruction) {
  return {worker.operands.data() + instruction.first_operand() +
              instruction.operands(),
          instruction.results()};
}

bool beginsGradientSum(const Instruction &instruction) {
  return (instruction.opcode() == Opcode::Backward &&
          instruction.operands() == 3) ||
         (instruction.opcode() == Opcode::WeightGradient &&
          instruction.operands() == 2);
}

const char *nameOf(Opcode opcode) {
  auto index = size_t(opcode);
  return index < std::size(kOpcodeNames) ? kOpcodeNames[index] : "unknown";
}

const char *nameOf(ValueKind kind) {
  auto index = size_t(kind);
  return index < std::size(kKindNames) ? kKindNames[index] : "unknown";
}

bool hasStreams(MessageModel model) {
  return model >= MessageModel::StreamPerDirection;
}

const char *nameOf(MessageModel model) {
  auto index = size_t(model);
  return index < std::size(kModelNames) ? kModelNames[index] : "unknown";
}

const char *nameOf(DataType type) {
  return type == DataType::Float32    ? "float32"
         : type == DataType::Float64  ? "float64"
         : type == DataType::BFloat16 ? "bfloat16"
                                      : "unknown";
}

const char *nameOf(RateSchedule schedule) {
  switch (schedule) {
  case RateSchedule::Constant:
    return "constant";
  case RateSchedule::Linear:
    return "linear";
  case RateSchedule::Cosine:
    return "cosine";
  case RateSchedule::WarmupStableDecay:
    return "wsd";
  }
  return "unknown";
}

std::string describe(const ProgramT &program, uint32_t worker, uint32_t index) {
  if (worker >= program.workers.size() || !program.workers[worker])
    return "no such worker";
  const WorkerT &stream = *program.workers[worker];
  if (index >= stream.instructions.size())
    return "no such instruction";
  return describeOne(stream, stream.instructions[index], true);
}

std::string countWithNoun(uint64_t count, const std::string &singular) {
  std::string text = std::to_string(count) + " ";
  if (count == 1)
    return text + singular;
  if (singular.ends_with("batch") || singular.ends_with("process"))
    return text + singular + "es";
  if (singular.ends_with("copy"))
    return text + singular.substr(0, singular.size() - 1) + "ies";
  return text + singular + "s";
}

uint64_t versionRead(const ProgramT &program, uint32_t stage, uint64_t step,
                     uint64_t microBatch) {
  auto before = [](uint64_t from, uint64_t count) {
    return from > count ? from - count : 0;
  };
  switch (program.updates) {
  case Updates::EachMicroBatch:
    return before(step * program.micro_batches + microBatch,
                  program.stages.size() - 1 - stage);
  case Updates::EachStep:
    return before(step, 1);
  default:
    return step;
  }
}

std::string locationOf(const ProgramT &program,
                       const Instruction &instruction) {
  if (instruction.location() >= program.locations.size())
    return "";
  const Location &location = program.locations[instruction.location()];
  if (location.file() >= program.files.size())
    return "";
  return program.files[location.file()] + ":" + number(location.line()) + ":" +
         number(location.column());
}

} // namespace chimera::program
