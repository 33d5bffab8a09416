//===- Evaluate.cpp - The loss of a model on held-out data ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass runs the forwards of a step, the loads and messages that they need,
// and the all-reduce of losses. The program was proven free of deadlocks and
// races. The proof is also valid for this subset of its instructions: the
// instructions of the subset keep their order, so each buffer is written and
// read in the same order, and there are fewer waits. Passes run between two
// steps with a flush, or after the last step. At these times, the buffers that
// passes use have no other values.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Predictions.h"

#include <cmath>
#include <utility>
#include <vector>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

void Interpreter::findEvaluated() {
  evaluated.resize(worker.instructions.size());
  for (uint32_t i = 0; i < evaluated.size(); ++i) {
    const Instruction &instruction = worker.instructions[i];
    switch (instruction.opcode()) {
    case Opcode::Load:
    case Opcode::Forward:
    case Opcode::Group:
    case Opcode::Split:
    case Opcode::Join:
    case Opcode::Rename:
      evaluated[i] = true;
      break;
    case Opcode::PostSend:
    case Opcode::PostRecv:
      evaluated[i] = instruction.kind() == ValueKind::Activation;
      break;
    case Opcode::AllReduceStart:
      evaluated[i] = instruction.kind() == ValueKind::Loss;
      break;
    case Opcode::Wait:
      evaluated[i] = evaluated[instruction.target()];
      break;
    default:
      break;
    }
  }
}

void Interpreter::evaluate() {
  beginEvaluation();
  while (next())
    advance();
  finish();
}

void Interpreter::beginEvaluation() {
  enterEvaluation();
  leaveFinishedSections(); // ends the passes if this rank has no instructions
                           // in them
}

void Interpreter::enterEvaluation() {
  status.enter(Status::Evaluating);
  pass = 0;
  // An evaluation must use the newest weights in all forwards. After a run
  // without a flush, the operands of some forwards are buffers with older
  // weights, so forwards use `evaluatedWeights` instead. A pass executes
  // renames but updates no weights. So the effect of the renames on `memoryOf`
  // is undone at the end of the pass.
  for (const program::State &state : worker.states)
    evaluatedWeights[{state.pipeline(), state.stage()}] =
        bytesOf(state.weights());
  memoryBeforePass = memoryOf;
  enterPass();
}

/// Enters the first section of a pass. With a flush, a pass consists of the
/// body. Without a flush, a pass consists of the prologue and the epilogue.
void Interpreter::enterPass() {
  lossOfStep.reset();
  const bool flushes = program.updates == program::Updates::Flush;
  enterSection(flushes ? worker.body_begin : 0,
               flushes ? worker.body_end : worker.body_begin);
  skipToEvaluated();
}

void Interpreter::skipToEvaluated() {
  for (; index < end && !evaluated[index]; ++index)
    if (index + 1 == groupEnd) {
      channels.endGroup();
      groupEnd = 0;
    }
}

/// Continues after the end of a section of a pass. Returns whether the
/// evaluation has ended.
bool Interpreter::endPass() {
  const bool flushes = program.updates == program::Updates::Flush;
  const auto size = static_cast<uint32_t>(worker.instructions.size());
  if (!flushes && end == worker.body_begin) {
    enterSection(worker.body_end, size);
    skipToEvaluated();
    return false;
  }
  endStep();
  memoryOf = memoryBeforePass;
  if (++*pass < options.evaluation.allPasses()) {
    enterPass();
    return false;
  }
  pass.reset();
  stepBegin = steadyNanoseconds(); // a profile does not include evaluations
  return true;
}

void Interpreter::reportPass(const QueuedStep &ofPass) {
  if (!ofPass.lossType)
    return;
  const ConstBytes sum{losses[ofPass.losses % losses.size()].get(), kLossBytes};
  const Evaluation &evaluation = options.evaluation;
  (evaluation.modeOf(*ofPass.pass) == ForwardMode::Accuracy ? rightOfPasses
                                                            : lossOfPasses) +=
      readLoss(sum, *ofPass.lossType, /*weight=*/1).mean;
  if (*ofPass.pass + 1 == evaluation.allPasses())
    evaluation.onResult(ofPass.step, resultOf(program, evaluation,
                                              std::exchange(lossOfPasses, 0),
                                              std::exchange(rightOfPasses, 0)));
}

uint64_t chimera::runtime::countLabels(const program::ProgramT &program,
                                       DataSource &data, uint64_t passes) {
  const uint64_t microBatches =
      uint64_t{program.micro_batches} * program.data_parallel;
  std::vector<std::byte> labels(static_cast<size_t>(
      program::labelBytes(*program.model, program.micro_batch_size)));
  uint64_t count = 0;
  for (uint64_t pass = 0; pass < passes; ++pass)
    for (uint64_t index = 0; index < microBatches; ++index) {
      data.load(ValueKind::Labels, {.step = pass, .index = index}, labels);
      count += program::countLabels(*program.model, program.micro_batch_size,
                                    labels);
    }
  return count;
}

EvaluationResult chimera::runtime::resultOf(const program::ProgramT &program,
                                            const Evaluation &evaluation,
                                            double losses, double right) {
  double weight = 0;
  for (uint64_t pass = 0; pass < evaluation.passes; ++pass)
    weight += totalWeight(program, *evaluation.data, pass, /*first=*/0,
                          program.micro_batches);
  EvaluationResult result{.loss = evaluationLoss(losses, weight)};
  // The logits of a model may have another shape than its labels. Then the
  // number of right predictions is not a number.
  if (!evaluation.hasAccuracy || std::isnan(right))
    return result;
  if (const uint64_t count =
          countLabels(program, *evaluation.data, evaluation.passes))
    result.accuracy = right / static_cast<double>(count);
  return result;
}
