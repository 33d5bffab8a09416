//===- ProgramText.cpp - The schedule of a program file -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/describe/ProgramText.h"

#include "compiler/describe/Spelling.h"

#include <optional>
#include <set>

namespace chimera {

using namespace program;

/// The letter of an action in an order (compiler/schedule/formats/OrderText.h).
/// None if `opcode` is not an action.
static std::optional<char> letterOf(Opcode opcode) {
  switch (opcode) {
  case Opcode::Forward:
    return 'F';
  case Opcode::Backward:
    return 'B';
  case Opcode::InputGradient:
    return 'I';
  case Opcode::WeightGradient:
    return 'W';
  case Opcode::Recompute:
    return 'R';
  default:
    return std::nullopt;
  }
}

static std::string wordOf(char letter, const Instruction &action) {
  std::string word = std::to_string(action.stage()) + letter +
                     std::to_string(action.micro_batch());
  if (action.parts() > 1)
    word += "." + std::to_string(action.part());
  else if (action.micro_batches() > 1)
    word +=
        "-" + std::to_string(action.micro_batch() + action.micro_batches() - 1);
  return word;
}

static std::string orderOf(const WorkerT &worker, bool overlaps) {
  std::string text;
  auto add = [&](const std::string &word) {
    text += (text.empty() ? "" : " ") + word;
  };
  for (size_t i = 0; i <= worker.instructions.size(); ++i) {
    if (overlaps && i == worker.body_begin)
      add("|");
    if (overlaps && i == worker.body_end)
      add("|");
    if (i == worker.instructions.size())
      break;
    const Instruction &instruction = worker.instructions[i];
    if (std::optional<char> letter = letterOf(instruction.opcode()))
      add(wordOf(*letter, instruction));
  }
  return text;
}

static std::string stageOf(size_t index, const Stage &stage) {
  auto field = [](const char *name, auto value) {
    return std::string(name) + " = " + std::to_string(value);
  };
  std::string text = "  chimera.stage " + std::to_string(index) + " cost <" +
                     field("forward", stage.forward()) + ", " +
                     field("backward", stage.backward()) + ", " +
                     field("input_gradient", stage.input_gradient()) + ", " +
                     field("weight_gradient", stage.weight_gradient()) + ", " +
                     field("recompute", stage.recompute()) + ", " +
                     field("update", stage.update()) + "> bytes <" +
                     field("weights", stage.weights_bytes()) + ", " +
                     field("optimizer", stage.optimizer_bytes()) + ", " +
                     field("stash", stage.stash_bytes()) + ", " +
                     field("boundary", stage.boundary_bytes());
  if (stage.copy_bytes() > 0)
    text += ", " + field("copy", stage.copy_bytes());
  if (stage.weight_stash_bytes() > 0)
    text += ", " + field("weight_stash", stage.weight_stash_bytes());
  return text + ">\n";
}

/// The `recompute` clause with the stages that the program recomputes. Empty if
/// there are none. The clause says `fused` if no worker waits for a gradient
/// between a recompute and its backward.
static std::string recomputeOf(const ProgramT &program) {
  std::set<uint32_t> stages;
  bool isFused = true;
  for (const auto &worker : program.workers) {
    bool isBetween = false; // between a recompute and its backward
    for (const Instruction &instruction : worker->instructions) {
      if (instruction.opcode() == Opcode::Recompute) {
        stages.insert(instruction.stage());
        isBetween = true;
      } else if (instruction.opcode() == Opcode::Wait) {
        const Instruction &post = worker->instructions[instruction.target()];
        const bool isGradient = post.opcode() == Opcode::PostRecv &&
                                post.kind() == ValueKind::Gradient;
        isFused &= !isBetween || !isGradient;
      } else if (letterOf(instruction.opcode())) {
        isBetween = false;
      }
    }
  }
  if (stages.empty())
    return {};
  return " recompute(" + listOf(stages) + (isFused ? " fused)" : ")");
}

std::string describeProgram(const ProgramT &program) {
  static constexpr const char *kUpdates[] = {"flush", "each_micro_batch",
                                             "each_step"};
  const bool overlaps = program.updates != Updates::Flush;
  std::string text = "chimera.pipeline @\"" + escaped(program.name) +
                     "\" stages(" + std::to_string(program.stages.size()) +
                     ") micro_batches(" +
                     std::to_string(program.micro_batches) + ") workers(" +
                     std::to_string(program.workers.size()) + ")";
  if (program.data_parallel > 1)
    text += " data_parallel(" + std::to_string(program.data_parallel) + ")";
  if (program.micro_batch_size > 1)
    text +=
        " micro_batch_size(" + std::to_string(program.micro_batch_size) + ")";
  if (overlaps)
    text += std::string(" updates(") +
            kUpdates[static_cast<size_t>(program.updates)] + ")";
  text += recomputeOf(program) + " time_unit(\"" + escaped(program.time_unit) +
          "\") {\n";
  for (size_t s = 0; s < program.stages.size(); ++s)
    text += stageOf(s, program.stages[s]);
  for (size_t p = 0; p < program.pipelines.size(); ++p) {
    const PipelineT &pipeline = *program.pipelines[p];
    text += "  chimera.direction " + std::to_string(p) +
            (pipeline.direction == Direction::Up ? " up" : " down") + " on " +
            listOf(pipeline.workers) + " micro_batches " +
            listOf(pipeline.micro_batches);
    if (!pipeline.forwards.empty())
      text += " forwards " + listOf(pipeline.forwards);
    if (pipeline.backward_parts > 1)
      text += " backward_parts " + std::to_string(pipeline.backward_parts);
    text += "\n";
  }
  for (size_t w = 0; w < program.workers.size(); ++w)
    text += "  chimera.order " + std::to_string(w) + " \"" +
            orderOf(*program.workers[w], overlaps) + "\"\n";
  return text + "}\n";
}

} // namespace chimera
