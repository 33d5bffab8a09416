//===- WarmUp.cpp - A first run of the computations on zeros --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

/// Executes an update that changes nothing, because the flag `halted` is set.
/// Does nothing for stages on the host, some of which ignore flags.
void Interpreter::warmUpUpdate(const Instruction &instruction, Bytes halted) {
  Stage *stage = stageOf(instruction);
  if (!stage->needsErrorFlag())
    return;
  const std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  const Bytes weights = bytesOf(in[0]), optimizerState = bytesOf(in[1]);
  const ConstBytes gradient = bytesOf(in[2]);
  const ConstBytes norm = in.size() > 3 ? bytesOf(in[3]) : ConstBytes();
  const Update numbers = {.number = 0,
                          .learningRate = program.optimizer->learning_rate,
                          .scale = 1,
                          .clipNorm = program.optimizer->clip_norm};
  compute->launch({reads(gradient), reads(norm), updates(weights),
                   updates(optimizerState), updates(halted)},
                  [=](const AddressMap &at) {
                    stage->optimizerStep(numbers, at(gradient), at(weights),
                                         at(optimizerState), at(halted),
                                         at(norm));
                  });
}

void Interpreter::warmUp() {
  std::vector<bool> isState(worker.buffers.size());
  for (const program::State &state : worker.states)
    isState[state.weights()] = isState[state.optimizer_state()] = true;
  for (uint32_t buffer = 0; buffer < worker.buffers.size(); ++buffer)
    if (!isState[buffer] && !program::isStash(worker.buffers[buffer].kind()))
      compute->zero(bytesOf(buffer));
  auto attempt = [&](uint32_t i, auto execute) {
    try {
      execute();
    } catch (const std::exception &error) {
      throw std::runtime_error(
          "in the warm-up run of instruction " + std::to_string(i) + ", " +
          program::describe(program,
                            channels.rank() %
                                static_cast<uint32_t>(program.workers.size()),
                            i) +
          ": " + error.what());
    }
    peakStash = std::max(peakStash, stashBytes());
  };
  // An update while the flag has halted changes nothing.
  const Block halted = allocate(kFlagBytes);
  const Bytes flag(halted.get(), kFlagBytes);
  compute->loadFromHost(flag, [](Bytes host) {
    constexpr int32_t kHalted = 1;
    static_assert(hasHalted(kHalted));
    std::memcpy(host.data(), &kHalted, sizeof kHalted);
  });
  for (uint32_t i = 0; i < worker.body_end; ++i) {
    const Instruction &instruction = worker.instructions[i];
    if (instruction.opcode() == Opcode::OptimizerStep)
      attempt(i, [&] { warmUpUpdate(instruction, flag); });
    else if (computes(instruction.opcode()))
      attempt(i, [&] { executeOne(instruction, i, 0); });
  }
  if (options.evaluation.data && options.evaluation.allPasses() > 0) {
    for (const program::State &state : worker.states)
      evaluatedWeights[{state.pipeline(), state.stage()}] =
          bytesOf(state.weights());
    for (uint64_t one : {uint64_t{0}, options.evaluation.allPasses() - 1}) {
      pass = one;
      for (uint32_t i = 0; i < worker.body_end; ++i) {
        const Instruction &instruction = worker.instructions[i];
        if (instruction.opcode() != Opcode::Forward)
          continue;
        // The memory of inputs and labels may have other values by now.
        const auto in = program::operandsOf(worker, instruction);
        for (size_t k : {size_t{0}, size_t{2}})
          if (k < in.size())
            compute->zero(bytesOf(in[k]));
        attempt(i, [&] { executeOne(instruction, i, 0); });
      }
    }
    pass.reset();
  }
  device.waitFor(compute->record(), options.timeout);
  for (std::unique_ptr<Stash> &stash : stashes)
    stash.reset();
  // No stash is left now. So after the first warm-up run, all bytes on the
  // meter belong to libraries, and are subtracted. After later warm-up runs
  // they are not subtracted, because another thread's stashes may be among
  // them.
  if (options.meter && !std::exchange(hasWarmedUp, true)) {
    peakStash -= std::min(peakStash, stashBytes());
    meterStart = options.meter->currentBytes();
  }
}
