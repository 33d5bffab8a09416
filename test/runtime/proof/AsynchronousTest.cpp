//===- AsynchronousTest.cpp - Programs without a flush --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that PipeDream and PipeDream-2BW programs of several sizes are
// accepted. Then each case breaks one constraint of a program, which must be
// refused.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/proof/Refused.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::program {
namespace {

TEST(VerifyAsynchronous, AcceptsPipeDreamAnd2BW) {
  for (Updates updates : {Updates::EachMicroBatch, Updates::EachStep})
    for (uint32_t workers : {1, 2, 3, 4, 8})
      for (uint32_t more : {0, 1, 3, 9})
        for (bool split : {false, true})
          for (MessageModel model :
               {MessageModel::Rendezvous, MessageModel::Buffered,
                MessageModel::StreamPerDirection, MessageModel::StreamPerPair,
                MessageModel::StreamPerDevice}) {
            ProgramT program =
                sampleAsynchronous({.workers = workers,
                                    .microBatches = workers + more,
                                    .splitBackward = split,
                                    .firstBackwardOverwrites = workers % 2 == 0,
                                    .dataParallel = 1 + more % 2},
                                   updates);
            program.message_model = model;
            std::vector<Violation> violations = verifyProgram(program);
            ASSERT_TRUE(violations.empty())
                << program.schedule << ", " << workers << " workers, "
                << workers + more << " micro-batches, split " << split << ": "
                << violations.front().message;
          }
}

// The programs have four workers and five micro-batches. Under PipeDream,
// worker 0 has four versions of its weights, and three forwards in flight.
constexpr auto kPipeDream = Updates::EachMicroBatch;
constexpr auto k2BW = Updates::EachStep;

/// Inserts an instruction before the instruction at `index`, into the section
/// (prologue, body or epilogue) of that instruction.
void put(ProgramT &program, uint32_t w, uint32_t index,
         Instruction instruction) {
  worker(program, w).body_begin += index < worker(program, w).body_begin;
  bool isInEpilogue = index >= worker(program, w).body_end;
  insert(program, w, index, instruction);
  worker(program, w).body_end -= isInEpilogue;
}

void remove(ProgramT &program, uint32_t w, uint32_t index) {
  WorkerT &stream = worker(program, w);
  for (Instruction &each : stream.instructions)
    if (each.opcode() == Opcode::Wait && each.target() > index)
      each.mutate_target(each.target() - 1);
  stream.instructions.erase(stream.instructions.begin() + index);
  stream.body_begin -= index < stream.body_begin;
  stream.body_end -= index < stream.body_end;
}

uint32_t inBody(ProgramT &program, uint32_t w, Opcode opcode,
                uint32_t skip = 0) {
  for (uint32_t i = worker(program, w).body_begin;; ++i)
    if (worker(program, w).instructions.at(i).opcode() == opcode && skip-- == 0)
      return i;
}

uint32_t inEpilogue(ProgramT &program, uint32_t w, Opcode opcode) {
  for (uint32_t i = worker(program, w).body_end;; ++i)
    if (worker(program, w).instructions.at(i).opcode() == opcode)
      return i;
}

Instruction &at(ProgramT &program, uint32_t w, uint32_t index) {
  return worker(program, w).instructions[index];
}

/// The number of an operand of the rename at `index` whose buffer has this
/// kind: the first such operand if `skip` is 0, the second one if it is 1, and
/// so on.
uint32_t operandOfKind(ProgramT &program, uint32_t w, uint32_t index,
                       ValueKind kind, uint32_t skip = 0) {
  const Instruction &rename = at(program, w, index);
  for (uint32_t k = 0; k < rename.operands(); ++k)
    if (bufferOf(program, w, rename, k).kind() == kind && skip-- == 0)
      return k;
  ADD_FAILURE() << "the rename has too few operands";
  return 0;
}

/// Extends the rename at `index`: the buffers `to` also get the values in the
/// buffers `from`.
void extend(ProgramT &program, uint32_t w, uint32_t index,
            std::vector<uint32_t> from, std::vector<uint32_t> to) {
  WorkerT &stream = worker(program, w);
  Instruction &rename = stream.instructions[index];
  auto old = operandsOf(stream, rename);
  from.insert(from.begin(), old.begin(), old.end());
  old = resultsOf(stream, rename);
  to.insert(to.begin(), old.begin(), old.end());
  rename.mutate_first_operand(static_cast<uint32_t>(stream.operands.size()));
  rename.mutate_operands(static_cast<uint16_t>(from.size()));
  rename.mutate_results(static_cast<uint16_t>(to.size()));
  stream.operands.insert(stream.operands.end(), from.begin(), from.end());
  stream.operands.insert(stream.operands.end(), to.begin(), to.end());
}

uint32_t addBuffer(ProgramT &program, uint32_t w, ValueKind kind,
                   uint64_t bytes) {
  WorkerT &stream = worker(program, w);
  stream.buffers.emplace_back(kind, stream.arena_bytes, bytes);
  stream.arena_bytes +=
      (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  return static_cast<uint32_t>(stream.buffers.size() - 1);
}

/// A copy of the instruction at `index`, with the operands and results
/// `buffers`.
Instruction likeAt(ProgramT &program, uint32_t w, uint32_t index,
                   std::vector<uint32_t> buffers) {
  WorkerT &stream = worker(program, w);
  Instruction instruction = stream.instructions[index];
  instruction.mutate_first_operand(
      static_cast<uint32_t>(stream.operands.size()));
  stream.operands.insert(stream.operands.end(), buffers.begin(), buffers.end());
  return instruction;
}

struct AsynchronousCase {
  const char *name;
  Updates updates;
  Rule rule;
  const char *message;
  void (*change)(ProgramT &program);
};

void PrintTo(const AsynchronousCase &each, std::ostream *stream) {
  *stream << each.name;
}

const AsynchronousCase kAsynchronousCases[] = {
    // Faults in the tables of the program.
    {"NoEpilogue", k2BW, Rule::Structure,
     "worker 3: expected a body and an epilogue in a program without a flush, "
     "got 81 and 0 instructions",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 3);
       w.body_end = static_cast<uint32_t>(w.instructions.size());
     }},
    {"NoBody", k2BW, Rule::Structure,
     "worker 0: expected a body and an epilogue in a program without a flush, "
     "got 0 and",
     [](ProgramT &p) { worker(p, 0).body_end = worker(p, 0).body_begin; }},
    {"TwoPipelines", k2BW, Rule::Structure,
     "expected one pipeline without a flush, got 2",
     [](ProgramT &p) {
       p.pipelines.push_back(std::make_unique<PipelineT>(*p.pipelines[0]));
       p.pipelines[1]->micro_batches.clear();
     }},

    // Faults in single instructions.
    {"LabelBehindTheNextStep", k2BW, Rule::Structure,
     "expected micro-batches inside [0, 10), got [10, 11)",
     [](ProgramT &p) {
       at(p, 0, inBody(p, 0, Opcode::Forward)).mutate_micro_batch(10);
     }},
    {"LabelOfTheNextStepInThePrologue", k2BW, Rule::Structure,
     "expected micro-batches inside [0, 5), got [5, 6)",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_micro_batch(5); }},
    {"LabelOfTheNextStepInTheEpilogue", k2BW, Rule::Structure,
     "expected micro-batches inside [0, 5), got [5, 6)",
     [](ProgramT &p) {
       at(p, 0, inEpilogue(p, 0, Opcode::Forward)).mutate_micro_batch(5);
     }},
    {"UpdateOfTheNextStep", kPipeDream, Rule::Structure,
     "expected the label of one micro-batch of its step, got [5, 6)",
     [](ProgramT &p) {
       find(p, 0, Opcode::OptimizerStep).mutate_micro_batch(5);
     }},
    {"UpdateOfAllMicroBatches", kPipeDream, Rule::Structure,
     "expected the label of one micro-batch of its step, got [0, 5)",
     [](ProgramT &p) {
       find(p, 0, Opcode::OptimizerStep).mutate_micro_batches(5);
     }},
    {"CopyToOtherSize", k2BW, Rule::Structure,
     "expected buffers of one kind and size, got 128 bytes of weights in "
     "buffer "
     "0 and 120 of weights in buffer 1",
     [](ProgramT &p) { shrink(bufferOf(p, 0, find(p, 0, Opcode::Copy), 1)); }},
    {"CopyOfTwo", k2BW, Rule::Structure,
     "expected 1 operands and 1 results, got 2 and 0",
     [](ProgramT &p) {
       find(p, 0, Opcode::Copy).mutate_operands(2);
       find(p, 0, Opcode::Copy).mutate_results(0);
     }},
    {"CopyOfAnotherKind", k2BW, Rule::Structure,
     "expected a buffer of loss, got one of weights",
     [](ProgramT &p) {
       find(p, 0, Opcode::Copy).mutate_kind(ValueKind::Loss);
     }},
    {"CopyOfAStash", k2BW, Rule::Structure, "a stash cannot be copied",
     [](ProgramT &p) {
       Instruction &copy = find(p, 0, Opcode::Copy);
       copy.mutate_kind(ValueKind::Stash);
       operand(p, 0, copy, 0) = indexOfBuffer(p, 0, ValueKind::Stash, 0);
       operand(p, 0, copy, 1) = indexOfBuffer(p, 0, ValueKind::Stash, 1);
     }},
    {"CopyOntoItself", k2BW, Rule::Structure,
     "expected a copy apart from its original, got buffer 0 twice",
     [](ProgramT &p) { operand(p, 0, find(p, 0, Opcode::Copy), 1) = 0; }},
    {"CopyOfAnotherWorkersStage", k2BW, Rule::Structure,
     "this stage is on worker 1",
     [](ProgramT &p) { find(p, 0, Opcode::Copy).mutate_stage(1); }},
    {"RenameAmongOthers", k2BW, Rule::Structure,
     "expected a rename as the last instruction of its section, got 1 after "
     "it",
     [](ProgramT &p) {
       uint32_t rename = indexOf(p, 0, Opcode::Rename);
       std::swap(at(p, 0, rename), at(p, 0, rename - 1));
     }},
    {"RenameOfNothing", k2BW, Rule::Structure, "expected operands, got none",
     [](ProgramT &p) {
       find(p, 0, Opcode::Rename).mutate_operands(0);
       find(p, 0, Opcode::Rename).mutate_results(0);
     }},
    {"RenameOfMoreThanItGives", k2BW, Rule::Structure,
     "operands and 1 results, got",
     [](ProgramT &p) { find(p, 3, Opcode::Rename).mutate_operands(1); }},
    {"RenameIntoAnotherKind", k2BW, Rule::Structure,
     "expected buffers of one kind and size, got 128 bytes of weights in",
     [](ProgramT &p) {
       uint32_t index = inBody(p, 0, Opcode::Rename);
       Instruction &rename = at(p, 0, index);
       uint32_t size = rename.operands();
       std::swap(operand(p, 0, rename,
                         size + operandOfKind(p, 0, index, ValueKind::Weights)),
                 operand(p, 0, rename,
                         size + operandOfKind(p, 0, index, ValueKind::Stash)));
     }},
    {"RenameOfABufferTwice", k2BW, Rule::Structure,
     "expected each buffer once, got buffer",
     [](ProgramT &p) {
       uint32_t index = inBody(p, 0, Opcode::Rename);
       operand(p, 0, at(p, 0, index),
               operandOfKind(p, 0, index, ValueKind::Stash, 1)) =
           operand(p, 0, at(p, 0, index),
                   operandOfKind(p, 0, index, ValueKind::Stash));
     }},
    {"RenameIntoAnotherBuffer", k2BW, Rule::Structure,
     "expected the same buffers in another order, got buffer",
     [](ProgramT &p) {
       uint32_t index = inBody(p, 0, Opcode::Rename);
       operand(p, 0, at(p, 0, index),
               at(p, 0, index).operands() +
                   operandOfKind(p, 0, index, ValueKind::Stash)) =
           addBuffer(p, 0, ValueKind::Stash, 512);
     }},

    // Faults in the set of actions.
    {"EndsWithoutActions", k2BW, Rule::Structure,
     "expected a forward of pipeline 0 stage 1 micro-batch 3, got none",
     [](ProgramT &p) {
       // Replace the forwards and backwards of prologue and epilogue by
       // zero_gradients. The actions of the body remain.
       for (uint32_t w = 0; w < p.workers.size(); ++w)
         for (uint32_t i = 0; i < worker(p, w).instructions.size(); ++i) {
           Opcode opcode = at(p, w, i).opcode();
           bool isInBody =
               i >= worker(p, w).body_begin && i < worker(p, w).body_end;
           if (!isInBody &&
               (opcode == Opcode::Forward || opcode == Opcode::Backward))
             at(p, w, i) = find(p, w, Opcode::ZeroGradient);
         }
     }},

    // Faults in waits and messages.
    {"WaitInAnotherSection", k2BW, Rule::Waits,
     "expected a post or start before it in its section",
     [](ProgramT &p) {
       at(p, 0, inBody(p, 0, Opcode::Wait))
           .mutate_target(indexOf(p, 0, Opcode::PostSend));
     }},
    {"TransferInFlightBetweenSections", k2BW, Rule::Waits,
     "no wait after it in its section",
     [](ProgramT &p) { remove(p, 0, indexOf(p, 0, Opcode::Wait)); }},
    {"MessageForTheNextSection", k2BW, Rule::Matching,
     "channel from worker 0 to worker 1: expected send 2 and receive 2 to "
     "agree, got no send and worker 1",
     [](ProgramT &p) {
       // Move the last message of worker 0 from the prologue to the body.
       uint32_t post = indexOf(p, 0, Opcode::PostSend, 2);
       uint32_t wait = indexOf(p, 0, Opcode::Wait, 2);
       Instruction sent = at(p, 0, post), waited = at(p, 0, wait);
       ASSERT_EQ(waited.target(), post);
       remove(p, 0, wait);
       remove(p, 0, post);
       uint32_t begin = worker(p, 0).body_begin;
       put(p, 0, begin, sent);
       waited.mutate_target(begin);
       put(p, 0, begin + 1, waited);
     }},

    // Faults in the use of buffers.
    {"RenameOfSharedBytes", k2BW, Rule::Buffers,
     "worker 0: expected the bytes of a rename's buffer to be its own, got "
     "buffer 1 (weights, bytes 128 to 255) and buffer",
     [](ProgramT &p) {
       bufferOf(p, 0, find(p, 0, Opcode::Load), 0).mutate_offset(192);
     }},
    {"RenameOfBytesSharedFromBefore", k2BW, Rule::Buffers,
     "worker 0: expected the bytes of a rename's buffer to be its own",
     [](ProgramT &p) {
       bufferOf(p, 0, find(p, 0, Opcode::ZeroGradient), 0).mutate_offset(64);
     }},
    {"StashesNotLoopCarried", k2BW, Rule::Buffers, "uses a stash a second time",
     [](ProgramT &p) { remove(p, 0, inBody(p, 0, Opcode::Rename)); }},
    {"BodyThatNeedsAnotherBefore", k2BW, Rule::Buffers,
     "reads a buffer that nothing has written",
     [](ProgramT &p) {
       operand(p, 0, at(p, 0, inEpilogue(p, 0, Opcode::Forward)), 0) =
           operand(p, 0, at(p, 0, inBody(p, 0, Opcode::Forward)), 0);
     }},
    {"BodyThatLeavesLessThanItFinds", k2BW, Rule::Buffers,
     "worker 0: expected the body to leave each buffer as it found it, got "
     "buffer",
     [](ProgramT &p) {
       std::vector<uint32_t> ring;
       for (int i = 0; i < 3; ++i)
         ring.push_back(addBuffer(p, 0, ValueKind::Tokens, 32));
       uint32_t load = indexOf(p, 0, Opcode::Load);
       put(p, 0, load, likeAt(p, 0, load, {ring[0]}));
       extend(p, 0, inBody(p, 0, Opcode::Rename), ring,
              {ring[1], ring[2], ring[0]});
     }},

    // Faults in the values and weights that instructions read.
    {"ActivationNotLoopCarried", k2BW, Rule::Values,
     "expected the activation of stage 2 micro-batch 0, got an unknown value "
     "(of another kind or step)",
     [](ProgramT &p) {
       // The rename exchanges the buffers of the activation in use and the
       // received one.
       uint32_t rename = inBody(p, 3, Opcode::Rename);
       uint32_t k = operandOfKind(p, 3, rename, ValueKind::Activation);
       uint32_t l = operandOfKind(p, 3, rename, ValueKind::Activation, 1);
       std::swap(operand(p, 3, at(p, 3, rename), k),
                 operand(p, 3, at(p, 3, rename), l));
     }},
    {"PipeDreamOfOldWeights", kPipeDream, Rule::Weights,
     "expected micro-batch 3 of step 1 to read the weights after 5 updates, "
     "got "
     "those after 4",
     [](ProgramT &p) {
       Instruction &forward = at(p, 0, inBody(p, 0, Opcode::Forward));
       operand(p, 0, forward, 1) = 2;
       forward.mutate_weight_version(1);
     }},
    {"Of2BWOfNewWeights", k2BW, Rule::Weights,
     "expected micro-batch 3 of step 1 to read the weights after 0 updates, "
     "got "
     "those after 1",
     [](ProgramT &p) {
       Instruction &forward = at(p, 0, inBody(p, 0, Opcode::Forward));
       operand(p, 0, forward, 1) = 1;
       forward.mutate_weight_version(0);
     }},
    {"VersionNotAsStated", k2BW, Rule::Weights,
     "expected weights 0 versions older than the newest, as stated, which are "
     "those after 1 updates, got those after 0",
     [](ProgramT &p) {
       at(p, 0, inBody(p, 0, Opcode::Forward)).mutate_weight_version(0);
     }},
    {"BackwardOfAnotherVersion", kPipeDream, Rule::Weights,
     "expected the weights that the forward of micro-batch 1 read, after 3 "
     "updates, got those after 4",
     [](ProgramT &p) {
       // The backward reads the version after the one that its forward read,
       // and states so.
       Instruction &backward = at(p, 0, inBody(p, 0, Opcode::Backward, 1));
       operand(p, 0, backward, 2) = 2;
       backward.mutate_weight_version(2);
     }},
    {"ForwardsExchanged", kPipeDream, Rule::Values,
     "expected the activation of stage 2 micro-batch 1, got the activation of "
     "stage 2 micro-batch 0",
     [](ProgramT &p) {
       Instruction &forward = at(p, 3, inBody(p, 3, Opcode::Forward));
       Instruction &later = at(p, 3, inBody(p, 3, Opcode::Forward, 1));
       forward.mutate_micro_batch(1);
       later.mutate_micro_batch(0);
     }},
    {"UpdateOfOldWeights", kPipeDream, Rule::Weights,
     "expected the newest weights of pipeline 0 stage 0, after 1 updates, got "
     "those of pipeline 0 stage 0 after 0",
     [](ProgramT &p) {
       operand(p, 0, at(p, 0, inBody(p, 0, Opcode::OptimizerStep, 1)), 0) = 2;
     }},
    {"UpdatesInAnotherOrder", kPipeDream, Rule::Weights,
     "expected the label of the update after 0 others, got that of the one "
     "after 1",
     [](ProgramT &p) {
       at(p, 0, inBody(p, 0, Opcode::OptimizerStep, 0)).mutate_micro_batch(1);
       at(p, 0, inBody(p, 0, Opcode::OptimizerStep, 1)).mutate_micro_batch(0);
     }},
    {"GradientOfTwoMicroBatches", kPipeDream, Rule::Weights,
     "expected the gradients of a whole update to reduce, got one of 2 "
     "backwards between "
     "micro-batch "
     "0 and 1 of stage 0",
     [](ProgramT &p) { remove(p, 0, inBody(p, 0, Opcode::ZeroGradient, 1)); }},
    {"UpdateLeftOut", k2BW, Rule::Weights,
     "worker 0: expected 1 update of pipeline 0 stage 0 by the end of step 0, "
     "got 0",
     [](ProgramT &p) { remove(p, 0, inBody(p, 0, Opcode::OptimizerStep)); }},
    {"VersionsNotLoopCarried", k2BW, Rule::Weights, "worker 3 instruction",
     [](ProgramT &p) {
       // The last worker's rename keeps only the activation.
       uint32_t index = inBody(p, 3, Opcode::Rename);
       uint32_t k = operandOfKind(p, 3, index, ValueKind::Activation);
       uint32_t other = operandOfKind(p, 3, index, ValueKind::Activation, 1);
       std::vector<uint32_t> pair = {operand(p, 3, at(p, 3, index), k),
                                     operand(p, 3, at(p, 3, index), other)};
       at(p, 3, index).mutate_operands(0);
       at(p, 3, index).mutate_results(0);
       extend(p, 3, index, pair, {pair[1], pair[0]});
     }},
    {"NewestNotInTheStateAtTheEnd", k2BW, Rule::Weights,
     "worker 0 state of pipeline 0 stage 0: expected the newest weights at the "
     "end, after 3 updates, got those of pipeline 0 stage 0 after 2",
     [](ProgramT &p) {
       // A rename at the end of the epilogue exchanges the two versions of the
       // weights.
       uint32_t last = static_cast<uint32_t>(worker(p, 0).instructions.size());
       Instruction rename = find(p, 0, Opcode::Rename);
       rename.mutate_operands(0);
       rename.mutate_results(0);
       worker(p, 0).instructions.push_back(rename);
       extend(p, 0, last, {0, 1}, {1, 0});
     }},
    {"WeightsThatNothingUpdates", k2BW, Rule::Weights,
     "(weights) what it found there, one step later",
     [](ProgramT &p) {
       uint32_t copy = indexOf(p, 0, Opcode::Copy);
       uint32_t buffer = addBuffer(p, 0, ValueKind::Weights, 128);
       put(p, 0, copy, likeAt(p, 0, copy, {0, buffer}));
     }},

    // A fault in the stated memory.
    {"PeakNotAsStated", k2BW, Rule::Memory, "bytes as stated, got",
     [](ProgramT &p) { worker(p, 1).peak_bytes -= 8; }},
};

class VerifyAsynchronousErrors
    : public testing::TestWithParam<AsynchronousCase> {};

TEST_P(VerifyAsynchronousErrors, IsRefused) {
  const AsynchronousCase &each = GetParam();
  expectRefused(
      sampleAsynchronous({.workers = 4, .microBatches = 5}, each.updates),
      {each.name, each.rule, each.message, each.change});
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyAsynchronousErrors,
                         testing::ValuesIn(kAsynchronousCases),
                         nameOfCase<AsynchronousCase>);

} // namespace
} // namespace chimera::program
