//===- Dump.cpp - A program as JSON ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversion of a program to JSON. The keys are the field names of program.fbs,
// in the order of that file. There are these differences: An instruction also
// has `does` (its description) and `at` (its source location). It has lists of
// its operands and results instead of its range of the worker's `operands`. A
// graph of a package is a list of lines. The type and shape of a tensor are one
// text.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"

#include "runtime/program/Package.h"

#include <nlohmann/json.hpp>

#include <sstream>

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

/// Number i of a list that may depend on the number of samples, n: for example
/// "4", "n", "2n" or "4 + 2n".
std::string dump(const std::vector<int64_t> &constants,
                 const std::vector<int64_t> &perSample, size_t i) {
  const int64_t constant = constants[i];
  const int64_t factor = perSample.empty() ? 0 : perSample[i];
  if (factor == 0)
    return std::to_string(constant);
  const std::string term = factor == 1 ? "n" : std::to_string(factor) + "n";
  return constant == 0 ? term : std::to_string(constant) + " + " + term;
}

/// For example "float32[n, 128]".
std::string dump(const TensorShapeT &tensor) {
  std::string text = nameOf(tensor.type);
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "[") + dump(tensor.shape, tensor.per_sample, i);
  return text + (tensor.shape.empty() ? "" : "]");
}

/// For example "96 + 32n + 2n²".
std::string dump(const Operations &operations) {
  std::string text = std::to_string(operations.constant());
  if (operations.per_sample())
    text += " + " + std::to_string(operations.per_sample()) + "n";
  if (operations.per_pair())
    text += " + " + std::to_string(operations.per_pair()) + "n²";
  return text;
}

Json dump(const std::vector<std::unique_ptr<TensorShapeT>> &tensors) {
  Json list = Json::array();
  for (const auto &tensor : tensors)
    list.push_back(dump(*tensor));
  return list;
}

template <typename T> std::string listed(const std::vector<T> &entries) {
  std::string text = "[";
  for (size_t i = 0; i < entries.size(); ++i) {
    std::ostringstream entry;
    entry << entries[i];
    text += (i ? ", " : "") + entry.str();
  }
  return text + "]";
}

std::string dump(const ArgumentT &argument) {
  auto value = [](int32_t number) {
    return number < 0 ? std::string("none") : "%" + std::to_string(number);
  };
  switch (argument.kind) {
  case ArgumentKind::Value:
    return value(argument.values[0]);
  case ArgumentKind::Values: {
    std::vector<std::string> names;
    for (int32_t number : argument.values)
      names.push_back(value(number));
    return listed(names);
  }
  case ArgumentKind::Boolean:
    return argument.integers[0] ? "true" : "false";
  case ArgumentKind::Integer:
    return dump(argument.integers, argument.per_sample, 0);
  case ArgumentKind::Number:
    return std::to_string(argument.numbers[0]);
  case ArgumentKind::Booleans:
    return listed(argument.integers);
  case ArgumentKind::Integers: {
    std::vector<std::string> integers;
    for (size_t i = 0; i < argument.integers.size(); ++i)
      integers.push_back(dump(argument.integers, argument.per_sample, i));
    return listed(integers);
  }
  case ArgumentKind::Numbers:
    return listed(argument.numbers);
  case ArgumentKind::Type:
    return nameOf(argument.type);
  case ArgumentKind::Text:
    return "\"" + argument.text + "\"";
  default:
    return "none";
  }
}

/// One line for each input, call and output.
Json dump(const GraphT *graph) {
  if (!graph)
    return nullptr;
  Json lines = Json::array();
  auto port = [](const Port &port) {
    return std::string(nameOf(port.role())) + " " +
           std::to_string(port.index());
  };
  for (const Port &input : graph->inputs)
    lines.push_back("%" + std::to_string(input.value()) + " = " + port(input));
  for (const auto &call : graph->calls) {
    std::string line;
    for (int32_t result : call->results)
      line += (line.empty() ? "" : ", ") +
              (result < 0 ? std::string("_") : "%" + std::to_string(result));
    line += " = " + call->operator_ +
            (call->overload.empty() ? "" : "." + call->overload) + "(";
    for (size_t i = 0; i < call->arguments.size(); ++i)
      line += (i ? ", " : "") + dump(*call->arguments[i]);
    lines.push_back(line + ")");
  }
  for (const Port &output : graph->outputs)
    lines.push_back(port(output) + " = %" + std::to_string(output.value()));
  return lines;
}

Json dump(const LayerKindT &kind) {
  Json parameters = Json::array(), constants = Json::array();
  for (const auto &parameter : kind.parameters)
    parameters.push_back({{"name", parameter->name},
                          {"shape", parameter->shape},
                          {"start", nameOf(parameter->start)},
                          {"deviation", parameter->deviation},
                          {"mean", parameter->mean},
                          {"low", parameter->low},
                          {"high", parameter->high},
                          {"zero_row", parameter->zero_row},
                          {"decay", nameOf(parameter->decay)}});
  for (const auto &constant : kind.constants)
    constants.push_back({{"type", nameOf(constant->type)},
                         {"shape", constant->shape},
                         {"bytes", constant->bytes}});
  const LayerGraphsT &graphs = *kind.graphs;
  Json native = Json::array();
  for (const auto &archive : graphs.native)
    native.push_back(
        {{"samples", archive->samples}, {"sha256", archive->sha256}});
  return {{"parameters", parameters},
          {"constants", constants},
          {"inputs", dump(graphs.inputs)},
          {"differentiable", graphs.differentiable},
          {"labels", dump(graphs.labels)},
          {"outputs", dump(graphs.outputs)},
          {"saved", dump(graphs.saved)},
          {"forward", dump(graphs.forward.get())},
          {"backward", dump(graphs.backward.get())},
          {"kept", graphs.kept},
          {"kept_shapes", dump(graphs.kept_shapes)},
          {"weight", dump(graphs.weight.get())},
          {"logits", dump(graphs.logits.get())},
          {"vocabulary", graphs.vocabulary},
          {"forward_flops", dump(graphs.forward_flops)},
          {"input_gradient_flops", dump(graphs.input_gradient_flops)},
          {"weight_gradient_flops", dump(graphs.weight_gradient_flops)},
          {"native", native}};
}

/// Null if there is no package. If checkPackage refuses the package, its error
/// text.
Json dump(const PackageT *package) {
  if (!package)
    return nullptr;
  if (std::string problem = checkPackage(*package); !problem.empty())
    return {{"malformed", problem}};
  Json kinds = Json::array(), layers = Json::array();
  for (const auto &kind : package->kinds)
    kinds.push_back(dump(*kind));
  for (const auto &layer : package->layers)
    layers.push_back({{"kind", layer->kind}, {"path", layer->path}});
  Json tied;
  if (package->tied)
    tied = {{"first", package->tied->first()}, {"last", package->tied->last()}};
  return {{"version", package->version},
          {"producer", package->producer},
          {"type", nameOf(package->type)},
          {"inputs", package->inputs},
          {"labels", package->labels},
          {"kinds", kinds},
          {"layers", layers},
          {"tied", tied}};
}

Json dump(const OptimizerT *optimizer) {
  if (!optimizer)
    return nullptr;
  return {{"name", optimizer->name},
          {"learning_rate", optimizer->learning_rate},
          {"beta1", optimizer->beta1},
          {"beta2", optimizer->beta2},
          {"epsilon", optimizer->epsilon},
          {"weight_decay", optimizer->weight_decay},
          {"lr_schedule", nameOf(optimizer->lr_schedule)},
          {"warmup", optimizer->warmup},
          {"min_lr", optimizer->min_lr},
          {"decay_steps", optimizer->decay_steps},
          {"lr_steps", optimizer->lr_steps},
          {"momentum", optimizer->momentum},
          {"nesterov", optimizer->nesterov},
          {"clip_norm", optimizer->clip_norm},
          {"no_decay", optimizer->no_decay},
          {"no_muon", optimizer->no_muon}};
}

Json dump(const Stage &stage) {
  return {{"first_layer", stage.first_layer()},
          {"layers", stage.layers()},
          {"forward", stage.forward()},
          {"backward", stage.backward()},
          {"input_gradient", stage.input_gradient()},
          {"weight_gradient", stage.weight_gradient()},
          {"recompute", stage.recompute()},
          {"update", stage.update()},
          {"weights_bytes", stage.weights_bytes()},
          {"optimizer_bytes", stage.optimizer_bytes()},
          {"stash_bytes", stage.stash_bytes()},
          {"weight_stash_bytes", stage.weight_stash_bytes()},
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

/// The entries [first, first + count) of worker.operands, without indices past
/// its end.
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
  // The strings of a file may have bytes that are not UTF-8. They are replaced,
  // because otherwise dump() would throw an exception.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace chimera::program
