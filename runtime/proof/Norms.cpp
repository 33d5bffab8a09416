//===- Norms.cpp - The contents of squared norms --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Norms.h"

namespace chimera::program::verify {

SquaredNorms::SquaredNorms(const ProgramT &program, const Facts &facts,
                           const GradientSums &sums, uint32_t w, Report &report)
    : program(program), facts(facts), sums(sums), w(w), report(report),
      worker(*program.workers[w]),
      stages(static_cast<uint32_t>(program.stages.size())) {}

void SquaredNorms::follow(const Instruction &instruction, uint32_t index,
                          int64_t step) {
  i = index;
  Buffers in = operandsOf(worker, instruction);
  Buffers out = resultsOf(worker, instruction);
  switch (instruction.opcode()) {
  case Opcode::SquaredNorm:
    return compute(instruction, in[0], norms[out[0]], step);
  case Opcode::AllReduceStart:
    if (instruction.kind() == ValueKind::SquaredNorm)
      reduce(instruction, in, norms[out[0]]);
    return;
  case Opcode::PostRecv:
    norms[out[0]] = SquaredNorm();
    return;
  case Opcode::Copy:
    norms[out[0]] = norms[in[0]];
    return;
  case Opcode::Rename:
    return rename(worker, instruction, norms);
  default:
    return;
  }
}

std::string SquaredNorms::faultOf(uint32_t buffer, int64_t number) const {
  const SquaredNorm &norm = norms[buffer];
  // If there is only one replica of one stage, its norm is the norm of all.
  const bool isAlone = stages == 1 && program.pipelines.size() == 1 &&
                       program.data_parallel == 1;
  if (norm.replica != kNone && (norm.isReduced || isAlone) &&
      norm.update == number)
    return "";
  return "expected the squared norm of the gradients of all stages for this "
         "update, got " +
         describe(norm);
}

void SquaredNorms::compute(const Instruction &instruction, uint32_t gradient,
                           SquaredNorm &norm, int64_t step) {
  norm = SquaredNorm();
  const int64_t update = sums.updateOf(instruction, gradient);
  if (update == kNoUpdate)
    return addFault("expected the whole gradient of an update, summed over all "
                    "pipelines and copies, got " +
                    sums.contentsOf(gradient, step));
  norm.replica = instruction.pipeline() * stages + instruction.stage();
  norm.update = update;
}

void SquaredNorms::reduce(const Instruction &start, Buffers in,
                          SquaredNorm &norm) {
  const CommunicatorT &communicator = *program.communicators[start.target()];
  SquaredNorm result;
  size_t next = 0;
  for (uint32_t own : facts.memberOf(start.target(), w)->contributions) {
    const Contribution &contribution = communicator.contributions[own];
    const SquaredNorm &given = norms[in[next++]];
    const uint32_t replica = contribution.key() * stages + contribution.stage();
    if (given.replica != replica || given.isReduced)
      return addFault("expected the squared norm of " +
                      nameOfReplica(replica, stages) + " alone, got " +
                      describe(given));
    if (next > 1 && given.update != result.update)
      return addFault("expected squared norms of one update");
    result = given;
  }
  result.isReduced = true;
  norm = result;
}

std::string SquaredNorms::describe(const SquaredNorm &norm) const {
  if (norm.replica == kNone)
    return "an unknown one";
  return norm.isReduced
             ? "that of another update"
             : "that of " + nameOfReplica(norm.replica, stages) + " alone";
}

} // namespace chimera::program::verify
