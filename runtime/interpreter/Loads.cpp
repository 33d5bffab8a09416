//===- Loads.cpp - Inputs and labels of micro-batches ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"
#include "runtime/interpreter/PlannedLoads.h"
#include "runtime/program/Package.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

/// Tells the queue how many loads can be in flight, and how many bytes they
/// have. The host enqueues loads before the device has ended earlier steps.
void Interpreter::expectLoads() {
  uint64_t count = 0, bytes = 0;
  for (const Instruction &instruction : worker.instructions)
    if (instruction.opcode() == Opcode::Load) {
      ++count;
      bytes +=
          worker.buffers[program::resultsOf(worker, instruction)[0]].bytes();
    }
  compute->reserveForLoads((kMaxStepsAhead + 2) * count,
                           (kMaxStepsAhead + 2) * bytes);
}

void Interpreter::load(const Instruction &instruction, uint64_t step) {
  const uint32_t buffer = program::resultsOf(worker, instruction)[0];
  const PlannedLoad planned =
      loadOf(program, pieces, worker, copy, instruction, step);
  const bool isAhead = ahead && !pass;
  const uint32_t block = blocks.locations[memoryOf[buffer]].block;
  if (isAhead && device.isSynchronous() && blocks.isUniform[block])
    return ahead->load(planned, arena[block]);
  compute->loadFromHost(bytesOf(buffer), [&](Bytes host) {
    if (isAhead)
      ahead->load(planned, host);
    else
      loadPieces(pass ? *options.evaluation.data : data, planned, host);
  });
}

/// Whether the weight of a micro-batch's loss depends on its labels. If so, all
/// ranks load the labels of all micro-batches.
bool Interpreter::weighsLabels() const {
  return program.model && program::lossTerms(*program.model) > 0;
}

/// Section `number` of a run of the steps [firstStep, endStep): the prologue,
/// the body for each step but without a flush not for the last, the epilogue.
/// None after the last one.
std::optional<ReadAhead::Section>
Interpreter::sectionToRead(uint64_t firstStep, uint64_t endStep,
                           uint64_t number) const {
  const uint64_t stepOfSection = firstStep + (number > 0 ? number - 1 : 0);
  if (stepOfSection >= endStep)
    return std::nullopt;
  uint32_t begin = worker.body_begin, sectionEnd = worker.body_end;
  if (number == 0)
    begin = 0, sectionEnd = worker.body_begin;
  else if (program.updates != program::Updates::Flush &&
           stepOfSection + 1 == endStep)
    begin = worker.body_end,
    sectionEnd = static_cast<uint32_t>(worker.instructions.size());
  ReadAhead::Section section{.step = stepOfSection, .loads = {}};
  for (uint32_t i = begin; i < sectionEnd; ++i)
    if (worker.instructions[i].opcode() == Opcode::Load)
      section.loads.push_back(loadOf(program, pieces, worker, copy,
                                     worker.instructions[i], stepOfSection));
  if (number > 0 && weighsLabels())
    section.afterLoads = [this, stepOfSection] {
      totalWeight(program, data, stepOfSection, /*first=*/0,
                  program.micro_batches);
    };
  return section;
}

/// Begins to read the samples of the next steps ahead, unless they are planned
/// already. With a flush, the plan covers the whole training, so that a
/// checkpoint does not interrupt it. Without a flush, each call of `run` begins
/// with a prologue, so it needs a new plan.
void Interpreter::readAhead() {
  const bool flushes = program.updates == program::Updates::Flush;
  if (options.readAhead == 0 || (ahead && flushes && step < plannedEnd))
    return;
  const uint64_t bytes = readAheadBytes(program, worker, options.readAhead);
  if (bytes == 0 && !weighsLabels())
    return;
  if (!ahead)
    ahead = std::make_unique<ReadAhead>(data, options.readAhead, bytes,
                                        program.buffer_alignment);
  plannedEnd = flushes ? std::max(steps, stepsOfTraining) : steps;
  ahead->begin(step, [this, first = step, last = plannedEnd](uint64_t number) {
    return sectionToRead(first, last, number);
  });
}
