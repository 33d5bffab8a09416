//===- VerifyTest.cpp - Accepted programs, and deadlocks ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Verify.h"
#include "test/runtime/program/Changes.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::program {
namespace {

std::string firstMessage(const ProgramT &program) {
  std::vector<Violation> violations = verifyProgram(program);
  return violations.empty() ? "" : violations.front().message;
}

TEST(Verify, AcceptsSamplePipelines) {
  for (uint32_t workers : {1, 2, 3, 4, 5, 8})
    for (uint32_t microBatches : {1, 2, 3, 8, 17})
      for (bool bidirectional : {false, true})
        for (bool splitBackward : {false, true})
          for (bool firstBackwardOverwrites : {false, true})
            for (uint32_t dataParallel : {1, 2})
              for (MessageModel model :
                   {MessageModel::Rendezvous, MessageModel::Buffered,
                    MessageModel::StreamPerDirection,
                    MessageModel::StreamPerPair,
                    MessageModel::StreamPerDevice}) {
                ProgramT program = samplePipeline(
                    {.workers = workers,
                     .microBatches = microBatches,
                     .bidirectional = bidirectional,
                     .splitBackward = splitBackward,
                     .firstBackwardOverwrites = firstBackwardOverwrites,
                     .dataParallel = dataParallel});
                program.message_model = model;
                ASSERT_EQ(firstMessage(program), "")
                    << workers << " workers, " << microBatches
                    << " micro-batches, bidirectional " << bidirectional
                    << ", split " << splitBackward;
              }
}

TEST(Verify, AcceptsRangesPartsAndRecomputes) {
  using Recompute = SampleOptions::Recompute;
  for (uint32_t workers : {1, 2, 4})
    for (uint32_t microBatches : {1, 2, 5, 8})
      for (bool bidirectional : {false, true})
        for (bool splitBackward : {false, true})
          for (bool doubledForwards : {false, true})
            for (uint32_t backwardParts : {1, 2, 4})
              for (Recompute recompute :
                   {Recompute::None, Recompute::All, Recompute::AllButFirst})
                ASSERT_EQ(firstMessage(samplePipeline(
                              {.workers = workers,
                               .microBatches = microBatches,
                               .bidirectional = bidirectional,
                               .splitBackward = splitBackward,
                               .firstBackwardOverwrites = doubledForwards,
                               .doubledForwards = doubledForwards,
                               .backwardParts = backwardParts,
                               .recompute = recompute})),
                          "")
                    << workers << " workers, " << microBatches
                    << " micro-batches, bidirectional " << bidirectional
                    << ", split " << splitBackward << ", doubled "
                    << doubledForwards << ", " << backwardParts << " parts";
}

TEST(Verify, AcceptsASumInPlaceOfAContribution) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  WorkerT &worker = *program.workers[0];
  auto start = std::ranges::find(worker.instructions, Opcode::AllReduceStart,
                                 &Instruction::opcode);
  uint32_t sum = resultsOf(worker, *start)[0];
  uint32_t contribution = operandsOf(worker, *start)[0];
  std::ranges::replace(worker.operands, sum, contribution);
  // The buffer of the sum is not used any more, so the peak is smaller.
  uint64_t before = worker.peak_bytes;
  worker.peak_bytes = 0;
  std::vector<Violation> violations = verifyProgram(program);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].rule, Violation::Rule::Memory);
  EXPECT_LE(before, 2000u);
}

TEST(Verify, ReportsAtMostTwentyViolations) {
  ProgramT program = samplePipeline();
  for (auto &worker : program.workers)
    for (Instruction &instruction : worker->instructions)
      instruction.mutate_opcode(Opcode(77));
  EXPECT_EQ(verifyProgram(program).size(), 20u);
}

// More than twenty values of a worker overlap in the arena, but the list ends
// after twenty.
TEST(Verify, ReportsAtMostTwentyOverlaps) {
  ProgramT program = samplePipeline();
  for (Buffer &buffer : program.workers[0]->buffers)
    buffer.mutate_offset(0);
  std::vector<Violation> violations = verifyProgram(program);
  EXPECT_EQ(violations.size(), 20u);
  for (const Violation &violation : violations)
    EXPECT_EQ(violation.rule, Violation::Rule::Buffers) << violation.message;
}

// The next tests use programs of two workers that exchange tokens in both
// directions before they train. Each test gives the exchange as a sequence of
// posts and waits.

constexpr auto kSend = Opcode::PostSend;
constexpr auto kReceive = Opcode::PostRecv;
constexpr auto kWait = Opcode::Wait;

struct Step {
  Opcode opcode;
  uint32_t target; ///< of a wait: the index of its post
};

/// A program of two workers. They begin with a load and then the instructions
/// `first` and `second`. Each worker has one buffer to send, which the load
/// writes, and one to receive. Worker 0 sends tokens of pipeline 0, and worker
/// 1 tokens of pipeline 1.
ProgramT exchange(const std::vector<Step> &first,
                  const std::vector<Step> &second, MessageModel model) {
  SampleOptions options{.workers = 2, .microBatches = 2, .bidirectional = true};
  ProgramT program = samplePipeline(options);
  program.message_model = model;
  for (uint32_t w = 0; w < 2; ++w) {
    WorkerT &worker = *program.workers[w];
    auto sent = static_cast<uint32_t>(worker.buffers.size());
    for (int i = 0; i < 2; ++i) {
      worker.buffers.emplace_back(ValueKind::Tokens, worker.arena_bytes,
                                  options.tokenBytes);
      worker.arena_bytes += kBufferAlignment;
    }
    std::vector<Instruction> before;
    auto own = static_cast<uint16_t>(w);
    auto add = [&](Opcode opcode, uint16_t pipeline, uint32_t target,
                   uint32_t buffer, uint16_t operands, uint16_t results) {
      before.emplace_back(opcode, ValueKind::Tokens, 0, 1, pipeline, 0,
                          pipeline, 1, target,
                          static_cast<uint32_t>(worker.operands.size()),
                          operands, results, 0, 0);
      if (operands + results > 0)
        worker.operands.push_back(buffer);
    };
    add(Opcode::Load, own, 0, sent, 0, 1);
    for (Step step : w == 0 ? first : second)
      if (step.opcode == kSend)
        add(kSend, own, 1 - w, sent, 1, 0);
      else if (step.opcode == kReceive)
        add(kReceive, 1 - own, 1 - w, sent + 1, 0, 1);
      else
        add(kWait, 0, step.target, 0, 0, 0);
    auto count = static_cast<uint32_t>(before.size());
    for (Instruction &each : worker.instructions)
      if (each.opcode() == kWait)
        each.mutate_target(each.target() + count);
    worker.instructions.insert(worker.instructions.begin(), before.begin(),
                               before.end());
    worker.body_end += count;
    worker.peak_instruction += count;
  }
  return program;
}

const std::vector<Step> kSendFirst = {
    {kSend, 0}, {kWait, 1}, {kReceive, 0}, {kWait, 3}};
const std::vector<Step> kReceiveFirst = {
    {kReceive, 0}, {kWait, 1}, {kSend, 0}, {kWait, 3}};
const std::vector<Step> kPostBoth = {
    {kSend, 0}, {kReceive, 0}, {kWait, 1}, {kWait, 2}};

std::vector<Violation::Rule> rulesOf(const ProgramT &program) {
  std::vector<Violation::Rule> rules;
  for (const Violation &violation : verifyProgram(program))
    rules.push_back(violation.rule);
  return rules;
}

const std::vector<Violation::Rule> kDeadlock = {Violation::Rule::Deadlock};

TEST(VerifyDeadlock, TwoSendsFirstNeedBuffering) {
  EXPECT_EQ(rulesOf(exchange(kSendFirst, kSendFirst, MessageModel::Rendezvous)),
            kDeadlock);
  EXPECT_TRUE(rulesOf(exchange(kSendFirst, kSendFirst, MessageModel::Buffered))
                  .empty());
}

TEST(VerifyDeadlock, TwoReceivesFirstAlwaysDeadlock) {
  for (MessageModel model : {MessageModel::Rendezvous, MessageModel::Buffered})
    EXPECT_EQ(rulesOf(exchange(kReceiveFirst, kReceiveFirst, model)),
              kDeadlock);
}

TEST(VerifyDeadlock, SendAgainstReceiveAndPostedBothAreFree) {
  for (const auto &[left, right] :
       {std::pair(kSendFirst, kReceiveFirst), std::pair(kPostBoth, kPostBoth),
        std::pair(kPostBoth, kSendFirst), std::pair(kReceiveFirst, kPostBoth)})
    EXPECT_TRUE(
        rulesOf(exchange(left, right, MessageModel::Rendezvous)).empty());
}

TEST(VerifyDeadlock, MessageShowsTheCycle) {
  std::vector<Violation> violations =
      verifyProgram(exchange(kSendFirst, kSendFirst, MessageModel::Rendezvous));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(
      violations[0].message,
      "expected no deadlock under the rendezvous model, got a cycle of 2:\n"
      "    rank 0: worker 0 instruction 2 (wait for post_send tokens pipeline "
      "0 "
      "stage 0 micro-batch 0 to worker 1) at sample.mlir:1:3\n"
      "      waits until worker 1 instruction 3 (post_recv tokens pipeline 0 "
      "stage 0 micro-batch 0 from worker 0) at sample.mlir:1:3 is reached\n"
      "    rank 1: worker 1 instruction 2 (wait for post_send tokens pipeline "
      "1 "
      "stage 0 micro-batch 1 to worker 0) at sample.mlir:1:3\n"
      "      waits until worker 0 instruction 3 (post_recv tokens pipeline 1 "
      "stage 0 micro-batch 1 from worker 1) at sample.mlir:1:3 is reached");
  EXPECT_EQ(violations[0].worker, 0u);
  EXPECT_EQ(violations[0].instruction, 2u);
}

TEST(VerifyDeadlock, MessageNamesTheRanksOfAllCopies) {
  for (auto [copies, ranks] :
       {std::pair(2, "ranks 1, 3: "), std::pair(3, "ranks 1, 3, 5: "),
        std::pair(4, "ranks 1, 3, 5, 7: "),
        std::pair(9, "ranks 1, 3, 5, ..., 17: ")}) {
    ProgramT program =
        exchange(kSendFirst, kSendFirst, MessageModel::Rendezvous);
    program.data_parallel = copies;
    EXPECT_NE(firstMessage(program).find(ranks), std::string::npos)
        << firstMessage(program);
  }
}

TEST(VerifyDeadlock, OneCommunicatorForBothDirectionsNeedsOneOrder) {
  EXPECT_TRUE(
      rulesOf(exchange(kPostBoth, kPostBoth, MessageModel::StreamPerDirection))
          .empty());
  ProgramT program =
      exchange(kPostBoth, kPostBoth, MessageModel::StreamPerPair);
  EXPECT_EQ(rulesOf(program), kDeadlock);
  EXPECT_EQ(
      firstMessage(program),
      "expected no deadlock under the stream-per-pair model, got a cycle of "
      "2:\n"
      "    rank 0: worker 0 instruction 1 (post_send tokens pipeline 0 stage 0 "
      "micro-batch 0 to worker 1) at sample.mlir:1:3\n"
      "      waits until worker 1 instruction 2 (post_recv tokens pipeline 0 "
      "stage 0 micro-batch 0 from worker 0) at sample.mlir:1:3 takes effect, "
      "after instruction 1 on its communicator\n"
      "    rank 1: worker 1 instruction 1 (post_send tokens pipeline 1 stage 0 "
      "micro-batch 1 to worker 0) at sample.mlir:1:3\n"
      "      waits until worker 0 instruction 2 (post_recv tokens pipeline 1 "
      "stage 0 micro-batch 1 from worker 1) at sample.mlir:1:3 takes effect, "
      "after instruction 1 on its communicator");
}

TEST(VerifyDeadlock, OneStreamForADeviceNeedsOneOrderOfAll) {
  // All-reduce s has the members s and s+1 (modulo 3). Each worker starts its
  // all-reduces in ascending order.
  ProgramT program =
      samplePipeline({.workers = 3, .microBatches = 1, .idlePipelines = 1});
  program.message_model = MessageModel::StreamPerDevice;
  EXPECT_TRUE(rulesOf(program).empty()) << firstMessage(program);
  // Now worker 0 starts all-reduce 2 before 0, worker 1 starts 0 before 1, and
  // worker 2 starts 1 before 2.
  move(program, 0, indexOf(program, 0, Opcode::AllReduceStart, 1),
       indexOf(program, 0, Opcode::AllReduceStart));
  program.message_model = MessageModel::StreamPerPair;
  EXPECT_TRUE(rulesOf(program).empty()) << firstMessage(program);
  program.message_model = MessageModel::StreamPerDevice;
  EXPECT_EQ(rulesOf(program), kDeadlock);
  std::string message = firstMessage(program);
  EXPECT_NE(message.find("under the stream-per-device model, got a cycle of 3"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("on its device\n"), std::string::npos) << message;
}

TEST(VerifyDeadlock, AllReducesAwaitedInDifferentOrders) {
  ProgramT program =
      samplePipeline({.workers = 2, .microBatches = 2, .bidirectional = true});
  // Both workers end with: start of all-reduce 0, start of all-reduce 1, start
  // of the losses, waits and updates. Change this so that worker 1 waits for
  // its first all-reduce before it starts its second one. Worker 0 does the
  // same in the opposite order.
  for (uint32_t w = 0; w < 2; ++w) {
    std::vector<Instruction> &stream = program.workers[w]->instructions;
    std::vector<size_t> starts, waits;
    for (size_t i = 0; i < stream.size(); ++i)
      if (stream[i].opcode() == Opcode::AllReduceStart)
        starts.push_back(i);
    for (size_t i = 0; i < stream.size(); ++i)
      if (stream[i].opcode() == kWait && stream[i].target() >= starts[0])
        waits.push_back(i);
    ASSERT_EQ(starts.size(), 3u);
    ASSERT_EQ(starts[2], starts[0] + 2);
    ASSERT_EQ(waits[0], starts[2] + 1);
    Instruction first = stream[starts[w]], second = stream[starts[1 - w]];
    Instruction loss = stream[starts[2]], wait = stream[waits[0]];
    wait.mutate_target(static_cast<uint32_t>(starts[0]));
    stream[starts[0]] = first;
    stream[starts[0] + 1] = wait;
    stream[starts[0] + 2] = second;
    stream[starts[0] + 3] = loss;
    // Correct the targets of the other two waits: the starts of the second
    // all-reduce and of the losses have moved.
    stream[waits[1]].mutate_target(static_cast<uint32_t>(starts[0] + 2));
    stream[waits[2]].mutate_target(static_cast<uint32_t>(starts[0] + 3));
  }
  std::vector<Violation> violations = verifyProgram(program);
  ASSERT_EQ(violations.size(), 1u) << firstMessage(program);
  EXPECT_EQ(violations[0].rule, Violation::Rule::Deadlock);
  EXPECT_NE(violations[0].message.find(
                "(wait for all_reduce_start weight gradient stage 1"),
            std::string::npos)
      << violations[0].message;
}

} // namespace
} // namespace chimera::program
