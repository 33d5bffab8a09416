//===- WriteByHand.h - Instruction streams that tests write -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_INTERPRETER_WRITEBYHAND_H
#define CHIMERA_TEST_RUNTIME_INTERPRETER_WRITEBYHAND_H

#include "runtime/program/Program.h"

namespace chimera::program {

/// Appends an instruction to the worker's stream and returns its index. Makes
/// the whole stream the body, which each step repeats.
inline uint32_t append(WorkerT &worker, Opcode opcode, uint32_t target,
                       const std::vector<uint32_t> &operands,
                       const std::vector<uint32_t> &results) {
  auto first = static_cast<uint32_t>(worker.operands.size());
  for (const auto &buffers : {operands, results})
    worker.operands.insert(worker.operands.end(), buffers.begin(),
                           buffers.end());
  worker.instructions.emplace_back(opcode, ValueKind::Activation, 0, 1, 0, 0, 0,
                                   1, target, first,
                                   static_cast<uint16_t>(operands.size()),
                                   static_cast<uint16_t>(results.size()), 0, 0);
  worker.body_end = static_cast<uint32_t>(worker.instructions.size());
  return worker.body_end - 1;
}

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_INTERPRETER_WRITEBYHAND_H
