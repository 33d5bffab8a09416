//===- Instructions.cpp - Execution of each kind of instruction -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Interpreter.h"

#include "runtime/interpreter/NormShare.h"
#include "runtime/model/LearningRate.h"

#include <stdexcept>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;
using program::ValueKind;

static WgradMode wgradModeOf(const Instruction &instruction) {
  return program::beginsGradientSum(instruction) ? WgradMode::Overwrite
                                                 : WgradMode::Add;
}

/// How a backward uses the memory of its gradient sum.
static Access usesGradientSum(WgradMode mode, Bytes bytes) {
  return mode == WgradMode::Overwrite ? writes(bytes) : updates(bytes);
}

/// How a backward uses its output gradient. The loss of the last stage, to
/// which the backward may add, takes the place of the gradient
/// (Stage::backward).
Access Interpreter::usesOutputGradient(const Instruction &instruction,
                                       Bytes bytes) const {
  return isLast(instruction) ? updates(bytes) : reads(bytes);
}

/// Divides `bytes` into `count` equal slices and returns slice `k`.
template <typename AnyBytes>
static AnyBytes slice(AnyBytes bytes, uint64_t k, uint64_t count) {
  size_t size = bytes.size() / count;
  return bytes.subspan(k * size, size);
}

void Interpreter::executeOne(const Instruction &instruction, uint32_t index,
                             uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  MicroBatch microBatch = pieceOf(step, instruction.micro_batch(),
                                  instruction.part(), instruction.parts());
  auto optional = [&](std::span<const uint32_t> buffers, size_t i) {
    return i < buffers.size() ? bytesOf(buffers[i]) : Bytes();
  };

  switch (instruction.opcode()) {
  case Opcode::Load:
    return load(instruction, step);
  case Opcode::ZeroGradient:
    return compute->zero(bytesOf(out[0]));
  case Opcode::Forward:
    return forward(instruction, step);
  case Opcode::Recompute:
    return recompute(instruction, step);
  case Opcode::Backward: {
    auto *stash = &stashOf(in[0]);
    Bytes outputGradient = bytesOf(in[1]);
    ConstBytes weights = bytesOf(in[2]);
    Bytes weightGradient = bytesOf(out[0]), inputGradient = optional(out, 1);
    WgradMode mode = wgradModeOf(instruction);
    return compute->launch(
        {usesOutputGradient(instruction, outputGradient), reads(weights),
         usesGradientSum(mode, weightGradient), writes(inputGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          stage->backward(microBatch, std::move(*stash), at(outputGradient),
                          at(weights), at(weightGradient), at(inputGradient),
                          mode);
        });
  }
  case Opcode::InputGradient: {
    auto *stash = &stashOf(in[0]), *rest = &stashOf(out[0]);
    Bytes outputGradient = bytesOf(in[1]);
    ConstBytes weights = bytesOf(in[2]);
    Bytes inputGradient = optional(out, 1);
    return compute->launch(
        {usesOutputGradient(instruction, outputGradient), reads(weights),
         writes(inputGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          *rest = stage->inputGradient(microBatch, std::move(*stash),
                                       at(outputGradient), at(weights),
                                       at(inputGradient));
        });
  }
  case Opcode::WeightGradient: {
    auto *stash = &stashOf(in[0]);
    ConstBytes weights = bytesOf(in[1]);
    Bytes weightGradient = bytesOf(out[0]);
    WgradMode mode = wgradModeOf(instruction);
    return compute->launch(
        {reads(weights), usesGradientSum(mode, weightGradient)},
        [=, stage = stageOf(instruction)](const AddressMap &at) {
          stage->weightGradient(microBatch, std::move(*stash), at(weights),
                                at(weightGradient), mode);
        });
  }
  case Opcode::PostSend:
  case Opcode::PostRecv:
    return post(instruction, index);
  case Opcode::Group:
    channels.beginGroup();
    groupEnd = index + 1 + instruction.target();
    return;
  case Opcode::Wait:
    channels.wait(*compute, std::move(requests[instruction.target()]),
                  options.timeout);
    return finishWait(worker.instructions[instruction.target()]);
  case Opcode::AllReduceStart:
    return startAllReduce(instruction, index);
  case Opcode::SquaredNorm:
    return squaredNorm(instruction);
  case Opcode::OptimizerStep:
    return update(instruction, step);
  case Opcode::Split:
  case Opcode::Join:
    return; // only the buffer numbers change
  case Opcode::Copy:
    return compute->copy(bytesOf(in[0]), bytesOf(out[0]));
  case Opcode::Rename: {
    std::vector<uint32_t> from;
    for (uint32_t buffer : in)
      from.push_back(memoryOf[buffer]);
    for (size_t i = 0; i < out.size(); ++i)
      memoryOf[out[i]] = from[i];
    return;
  }
  }
  throw std::invalid_argument(
      "expected a known opcode, got " +
      std::to_string(static_cast<unsigned>(instruction.opcode())));
}

void Interpreter::forward(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  Stage *stage = stageOf(instruction);
  bool last = isLast(instruction);
  uint32_t count = instruction.micro_batches();
  uint32_t parts = pieces.partsOf(instruction.micro_batch());
  uint64_t cuts = uint64_t(count) * parts;
  ConstBytes weights =
      pass ? evaluatedWeights.at({instruction.pipeline(), instruction.stage()})
           : bytesOf(in[1]);
  size_t nextStash = last ? count : 1;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t m = instruction.micro_batch() + k;
    Bytes loss = last ? bytesOf(out[k]) : Bytes();
    // The losses of the parts of a micro-batch are first written to `shares`.
    // If a micro-batch has only one part, its loss is written to `loss`
    // directly.
    auto shareOf = [&](uint32_t part) {
      return Bytes(shares.get() + part * loss.size(), loss.size());
    };
    for (uint32_t part = 0; part < parts; ++part) {
      uint64_t cut = uint64_t(k) * parts + part;
      ConstBytes input = slice(bytesOf(in[0]), cut, cuts);
      ConstBytes labels =
          last ? slice(bytesOf(in[2]), cut, cuts) : ConstBytes();
      Bytes output = !last       ? slice(bytesOf(out[0]), cut, cuts)
                     : parts > 1 ? shareOf(part)
                                 : loss;
      bool again = recomputed[instruction.stage() * pieces.pieceCount() +
                              pieces.pieceNumberOf(m, part)];
      auto *stash = again || pass ? nullptr : &stashOf(out[nextStash++]);
      const ForwardMode mode = pass    ? options.evaluation.modeOf(*pass)
                               : stash ? ForwardMode::Both
                                       : ForwardMode::Output;
      compute->launch(
          {reads(input), reads(labels), reads(weights), writes(output)},
          [=, piece = pieceOf(step, m, part, parts)](const AddressMap &at) {
            auto made = stage->forward(piece, at(input), at(labels),
                                       at(weights), at(output), mode);
            if (stash)
              *stash = std::move(made);
          });
    }
    if (last && parts > 1) {
      std::vector<ConstBytes> summands;
      for (uint32_t part = 0; part < parts; ++part)
        summands.push_back(shareOf(part));
      compute->fold(stage->lossType(), std::move(summands), loss);
    }
  }
}

void Interpreter::recompute(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  uint32_t m = instruction.micro_batch();
  program::Range range = pieces.forwardOf(m);
  uint64_t cuts = uint64_t(range.count) * instruction.parts();
  uint64_t cut =
      uint64_t(pieces.microBatchInStep(m) - range.first) * instruction.parts() +
      instruction.part();
  ConstBytes input = slice(bytesOf(in[0]), cut, cuts);
  ConstBytes labels =
      in.size() > 2 ? slice(bytesOf(in[2]), cut, cuts) : ConstBytes();
  ConstBytes weights = bytesOf(in[1]);
  auto *stash = &stashOf(program::resultsOf(worker, instruction)[0]);
  MicroBatch piece = pieceOf(step, m, instruction.part(), instruction.parts());
  compute->launch({reads(input), reads(labels), reads(weights)},
                  [=, stage = stageOf(instruction)](const AddressMap &at) {
                    *stash =
                        stage->forward(piece, at(input), at(labels),
                                       at(weights), {}, ForwardMode::Stash);
                  });
}

void Interpreter::post(const Instruction &instruction, uint32_t index) {
  bool isSend = instruction.opcode() == Opcode::PostSend;
  uint32_t peer = rankOf(instruction.target());
  uint32_t buffer = (isSend ? program::operandsOf(worker, instruction)
                            : program::resultsOf(worker, instruction))[0];
  Bytes bytes = bytesOf(buffer);
  if (isZeroCopy[index]) {
    Block &memory = arena[blocks.locations[buffer].block];
    requests[index] =
        isSend ? channels.postSendBlock(peer, memory, bytes.size())
               : channels.postReceiveBlock(peer, memory, bytes.size());
    return;
  }
  requests[index] =
      isSend
          ? channels.postSend(peer, bytes, lastUses.lastWrite(memoryOf[buffer]))
          : channels.postReceive(peer, bytes,
                                 lastUses.lastUse(memoryOf[buffer]));
}

void Interpreter::squaredNorm(const Instruction &instruction) {
  const uint32_t sum = program::operandsOf(worker, instruction)[0];
  const uint64_t pipelines = program.pipelines.size();
  Stage *stage = stageOf(instruction);
  const ConstBytes share =
      normShareOf(program, instruction.stage(), stage->weightType(),
                  bytesOf(sum), copy * pipelines + instruction.pipeline(),
                  pipelines * program.data_parallel);
  Bytes norm = bytesOf(program::resultsOf(worker, instruction)[0]);
  compute->launch({reads(share), writes(norm)}, [=](const AddressMap &at) {
    stage->squaredNorm(at(share), at(norm));
  });
}

void Interpreter::update(const Instruction &instruction, uint64_t step) {
  std::span<const uint32_t> in = program::operandsOf(worker, instruction);
  std::span<const uint32_t> out = program::resultsOf(worker, instruction);
  double scale = gradientScale(program, data, step, instruction.micro_batch(),
                               instruction.micro_batches());
  // Keep the gradient in every step, because the run may end after any step.
  if (options.keepGradients)
    keepGradient(instruction, bytesOf(in[2]), scale);
  // If the old weights are still needed, the buffer of the new weights is
  // another one. optimizerStep updates weights in place, so copy the old
  // weights to the new buffer first.
  if (out[0] != in[0])
    compute->copy(bytesOf(in[0]), bytesOf(out[0]));
  const ConstBytes norm = in.size() > 3 ? bytesOf(in[3]) : ConstBytes();
  if (!norm.empty() && !std::exchange(hasNormOfStep, true))
    compute->readBack(
        norm,
        {losses[nextLoss % losses.size()].get() + kLossBytes, norm.size()});
  if (scale == 0)
    return;
  ConstBytes gradient = bytesOf(in[2]);
  Bytes weights = bytesOf(out[0]), optimizerState = bytesOf(out[1]);
  Bytes halted = haltFlags.of({instruction.pipeline(), instruction.stage()});
  const uint64_t index =
      program::indexOfUpdate(program, instruction, step - options.firstStep);
  // Without a flush, the update may belong to another step than `step`.
  const uint64_t stepOfUpdate =
      options.firstStep + index / program::updatesPerStep(program);
  const Update numbers = {
      .number = options.firstUpdate + index,
      .learningRate =
          learningRateAt(*program.optimizer, stepsOfTraining, stepOfUpdate),
      .scale = scale,
      .clipNorm = program.optimizer->clip_norm,
      .skipNonFinite = options.skipNonFinite};
  compute->launch({reads(gradient), reads(norm), updates(weights),
                   updates(optimizerState), updates(halted)},
                  [=, stage = stageOf(instruction)](const AddressMap &at) {
                    stage->optimizerStep(numbers, at(gradient), at(weights),
                                         at(optimizerState), at(halted),
                                         at(norm));
                  });
}

void Interpreter::startAllReduce(const Instruction &instruction,
                                 uint32_t index) {
  std::vector<ConstBytes> contributions;
  uint32_t result = program::resultsOf(worker, instruction)[0];
  Event after = lastUses.lastUse(memoryOf[result]);
  for (uint32_t buffer : program::operandsOf(worker, instruction)) {
    contributions.push_back(bytesOf(buffer));
    after = laterEvent(after, lastUses.lastWrite(memoryOf[buffer]));
  }
  requests[index] = channels.startAllReduce(
      groups[instruction.target()], reduceTypes[instruction.target()],
      std::move(contributions), bytesOf(result), after);
}

void Interpreter::finishWait(const Instruction &waited) {
  if (waited.opcode() != Opcode::AllReduceStart ||
      waited.kind() != ValueKind::Loss)
    return;
  lossOfStep = reduceTypes[waited.target()];
  ConstBytes sum = bytesOf(program::resultsOf(worker, waited)[0]);
  compute->readBack(sum, {losses[nextLoss % losses.size()].get(),
                          std::min<uint64_t>(sum.size(), kLossBytes)});
}

/// The copy of the gradient sum that the update `instruction` uses. Allocates
/// its memory at the first call.
Interpreter::GradientCopy &
Interpreter::gradientCopyOf(const Instruction &instruction) {
  GradientCopy &copy =
      gradientCopies[{instruction.pipeline(), instruction.stage()}];
  if (!copy.block) {
    uint32_t sum = program::operandsOf(worker, instruction)[2];
    copy.block = allocate(worker.buffers[sum].bytes());
    copy.bytes = {copy.block.get(), worker.buffers[sum].bytes()};
  }
  return copy;
}

void Interpreter::keepGradient(const Instruction &instruction, ConstBytes sum,
                               double scale) {
  GradientCopy &copy = gradientCopyOf(instruction);
  copy.isThere = true;
  compute->copy(sum, copy.bytes);
  compute->scale(stageOf(instruction)->weightType(), copy.bytes, scale);
}
