//===- Dump.cpp - A program as JSON ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys are the field names of program.fbs, in its order. An instruction has
// `does`, its description, `at`, its source location, and its buffers in lists
// instead of a range of the operand pool.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"

#include <nlohmann/json.hpp>

namespace chimera::program {

namespace {

using Json = nlohmann::ordered_json;

const char *nameOf(Direction direction) {
  return direction == Direction::Down ? "down"
         : direction == Direction::Up ? "up"
                                      : "unknown";
}

const char *nameOf(Updates updates) {
  return updates == Updates::Flush            ? "flush"
         : updates == Updates::EachMicroBatch ? "each_micro_batch"
         : updates == Updates::EachStep       ? "each_step"
                                              : "unknown";
}

Json dump(const ModelT *model) {
  if (!model)
    return nullptr;
  return {{"architecture", model->architecture},
          {"layers", model->layers},
          {"heads", model->heads},
          {"width", model->width},
          {"context", model->context},
          {"vocabulary", model->vocabulary},
          {"dropout", model->dropout},
          {"tied", model->tied}};
}

Json dump(const OptimizerT *optimizer) {
  if (!optimizer)
    return nullptr;
  return {{"name", optimizer->name},
          {"learning_rate", optimizer->learning_rate},
          {"beta1", optimizer->beta1},
          {"beta2", optimizer->beta2},
          {"epsilon", optimizer->epsilon},
          {"weight_decay", optimizer->weight_decay}};
}

Json dump(const Stage &stage) {
  return {{"first_layer", stage.first_layer()},
          {"layers", stage.layers()},
          {"forward", stage.forward()},
          {"backward", stage.backward()},
          {"input_gradient", stage.input_gradient()},
          {"weight_gradient", stage.weight_gradient()},
          {"recompute", stage.recompute()},
          {"weights_bytes", stage.weights_bytes()},
          {"optimizer_bytes", stage.optimizer_bytes()},
          {"stash_bytes", stage.stash_bytes()},
          {"boundary_bytes", stage.boundary_bytes()},
          {"copy_bytes", stage.copy_bytes()}};
}

Json dump(const Tied *tied) {
  if (!tied)
    return nullptr;
  return {{"first_offset", tied->first_offset()},
          {"last_offset", tied->last_offset()},
          {"bytes", tied->bytes()}};
}

Json dump(const PipelineT &pipeline) {
  return {{"direction", nameOf(pipeline.direction)},
          {"workers", pipeline.workers},
          {"micro_batches", pipeline.micro_batches},
          {"forwards", pipeline.forwards},
          {"backward_parts", pipeline.backward_parts}};
}

Json dump(const CommunicatorT &communicator) {
  Json contributions = Json::array();
  for (const Contribution &contribution : communicator.contributions)
    contributions.push_back({{"worker", contribution.worker()},
                             {"key", contribution.key()},
                             {"stage", contribution.stage()}});
  return {{"kind", nameOf(communicator.kind)},
          {"contributions", contributions}};
}

/// The part of the operand pool [first, first + count) that exists.
std::vector<uint32_t> poolRange(const WorkerT &worker, uint64_t first,
                                uint64_t count) {
  uint64_t size = worker.operands.size();
  first = std::min(first, size);
  count = std::min(count, size - first);
  auto begin = worker.operands.begin() + static_cast<ptrdiff_t>(first);
  return {begin, begin + static_cast<ptrdiff_t>(count)};
}

Json dump(const ProgramT &program, uint32_t worker, uint32_t index) {
  const WorkerT &stream = *program.workers[worker];
  const Instruction &instruction = stream.instructions[index];
  uint64_t first = instruction.first_operand();
  return {{"does", describe(program, worker, index)},
          {"at", locationOf(program, instruction)},
          {"opcode", nameOf(instruction.opcode())},
          {"kind", nameOf(instruction.kind())},
          {"part", instruction.part()},
          {"parts", instruction.parts()},
          {"pipeline", instruction.pipeline()},
          {"stage", instruction.stage()},
          {"micro_batch", instruction.micro_batch()},
          {"micro_batches", instruction.micro_batches()},
          {"target", instruction.target()},
          {"operands", poolRange(stream, first, instruction.operands())},
          {"results", poolRange(stream, first + instruction.operands(),
                                instruction.results())},
          {"weight_version", instruction.weight_version()},
          {"location", instruction.location()}};
}

Json dump(const ProgramT &program, uint32_t worker) {
  const WorkerT &stream = *program.workers[worker];
  Json instructions = Json::array();
  for (uint32_t i = 0; i < stream.instructions.size(); ++i)
    instructions.push_back(dump(program, worker, i));
  Json buffers = Json::array();
  for (const Buffer &buffer : stream.buffers)
    buffers.push_back({{"kind", nameOf(buffer.kind())},
                       {"offset", buffer.offset()},
                       {"bytes", buffer.bytes()}});
  Json states = Json::array();
  for (const State &state : stream.states)
    states.push_back({{"pipeline", state.pipeline()},
                      {"stage", state.stage()},
                      {"weights", state.weights()},
                      {"optimizer_state", state.optimizer_state()}});
  return {{"instructions", instructions},
          {"body_begin", stream.body_begin},
          {"body_end", stream.body_end},
          {"buffers", buffers},
          {"states", states},
          {"arena_bytes", stream.arena_bytes},
          {"peak_bytes", stream.peak_bytes},
          {"peak_instruction", stream.peak_instruction},
          {"memory_cap", stream.memory_cap}};
}

} // namespace

std::string dumpJson(const ProgramT &program) {
  Json stages = Json::array(), pipelines = Json::array();
  Json communicators = Json::array(), workers = Json::array();
  for (const Stage &stage : program.stages)
    stages.push_back(dump(stage));
  for (const auto &pipeline : program.pipelines)
    pipelines.push_back(pipeline ? dump(*pipeline) : Json());
  for (const auto &communicator : program.communicators)
    communicators.push_back(communicator ? dump(*communicator) : Json());
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    workers.push_back(program.workers[w] ? dump(program, w) : Json());
  Json locations = Json::array();
  for (const Location &location : program.locations)
    locations.push_back({{"file", location.file()},
                         {"line", location.line()},
                         {"column", location.column()}});
  Json document = {{"version", std::to_string(kMajorVersion) + "." +
                                   std::to_string(kMinorVersion)},
                   {"producer", program.producer},
                   {"name", program.name},
                   {"schedule", program.schedule},
                   {"model", dump(program.model.get())},
                   {"optimizer", dump(program.optimizer.get())},
                   {"weight_type", nameOf(program.weight_type)},
                   {"activation_type", nameOf(program.activation_type)},
                   {"micro_batch_size", program.micro_batch_size},
                   {"seed", program.seed},
                   {"time_unit", program.time_unit},
                   {"micro_batches", program.micro_batches},
                   {"data_parallel", program.data_parallel},
                   {"updates", nameOf(program.updates)},
                   {"stages", stages},
                   {"tied", dump(program.tied.get())},
                   {"pipelines", pipelines},
                   {"message_model", nameOf(program.message_model)},
                   {"communicators", communicators},
                   {"workers", workers},
                   {"files", program.files},
                   {"locations", locations},
                   {"buffer_alignment", program.buffer_alignment}};
  // Strings come from files that anyone may have written: bytes that are no
  // UTF-8 are replaced, not fatal.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace chimera::program
