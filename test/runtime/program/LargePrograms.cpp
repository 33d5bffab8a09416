//===- LargePrograms.cpp - Programs with two large counts -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/LargePrograms.h"

#include "test/runtime/program/Changes.h"
#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>

namespace chimera::program {

namespace {

/// A buffer of the worker for a loss. Adds it if there is none.
uint32_t lossOf(WorkerT &worker) {
  auto loss = std::ranges::find(worker.buffers, ValueKind::Loss, &Buffer::kind);
  if (loss == worker.buffers.end()) {
    loss = worker.buffers.emplace(loss, ValueKind::Loss, worker.arena_bytes, 8);
    worker.arena_bytes += kBufferAlignment;
  }
  return static_cast<uint32_t>(loss - worker.buffers.begin());
}

/// Adds a worker without stages but with a buffer for a loss.
WorkerT &addWorker(ProgramT &program) {
  WorkerT &worker = *program.workers.emplace_back(std::make_unique<WorkerT>());
  worker.peak_bytes = worker.buffers[lossOf(worker)].bytes();
  return worker;
}

/// Appends a post of a message with the loss of micro-batch 0.
void post(WorkerT &worker, Opcode opcode, uint32_t peer) {
  bool sends = opcode == Opcode::PostSend;
  auto first = static_cast<uint32_t>(worker.operands.size());
  worker.operands.push_back(lossOf(worker));
  worker.instructions.emplace_back(opcode, ValueKind::Loss, 0, 1, 0, 0, 0, 1,
                                   peer, first, sends, !sends, 0, 0);
  worker.body_end = static_cast<uint32_t>(worker.instructions.size());
}

/// Appends an instruction without operands: a group of posts, or a wait.
void append(WorkerT &worker, Opcode opcode, uint32_t target) {
  worker.instructions.emplace_back(opcode, ValueKind::Loss, 0, 1, 0, 0, 0, 1,
                                   target, 0, 0, 0, 0, 0);
  worker.body_end = static_cast<uint32_t>(worker.instructions.size());
}

void postAndWait(WorkerT &worker, Opcode opcode, uint32_t peer) {
  post(worker, opcode, peer);
  append(worker, Opcode::Wait, worker.body_end - 1);
}

} // namespace

ProgramT manyPipelines(uint32_t pipelines, uint32_t microBatches) {
  return samplePipeline({.workers = 1,
                         .microBatches = microBatches,
                         .idlePipelines = pipelines - 1});
}

ProgramT manyMembers(uint32_t workers) {
  return samplePipeline({.workers = workers,
                         .stages = 1,
                         .microBatches = 1,
                         .idlePipelines = workers - 1});
}

ProgramT largeGroup(uint32_t peers) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  program.message_model = MessageModel::StreamPerDirection;
  WorkerT &sender = *program.workers[0];
  uint32_t group = sender.body_end;
  append(sender, Opcode::Group, peers);
  for (uint32_t peer = 1; peer <= peers; ++peer) {
    post(sender, Opcode::PostSend, peer);
    postAndWait(addWorker(program), Opcode::PostRecv, 0);
  }
  for (uint32_t peer = 1; peer <= peers; ++peer)
    append(sender, Opcode::Wait, group + peer);
  return program;
}

ProgramT longCycle(uint32_t workers) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  for (uint32_t w = 1; w < workers; ++w)
    addWorker(program);
  for (uint32_t w = 0; w < workers; ++w) {
    WorkerT &worker = *program.workers[w];
    postAndWait(worker, Opcode::PostRecv, (w + workers - 1) % workers);
    postAndWait(worker, Opcode::PostSend, (w + 1) % workers);
  }
  return program;
}

ProgramT manyWaiters(uint32_t workers) {
  ProgramT program = manyMembers(workers);
  // Each worker of the last half first waits for a message that a worker of the
  // first half sends at the end. So the first half waits in the all-reduce.
  for (uint32_t w = 0; w < workers / 2; ++w) {
    uint32_t other = workers - 1 - w;
    postAndWait(*program.workers[w], Opcode::PostSend, other);
    WorkerT &waiter = *program.workers[other];
    for (Instruction &each : waiter.instructions)
      if (each.opcode() == Opcode::Wait)
        each.mutate_target(each.target() + 2);
    postAndWait(waiter, Opcode::PostRecv, w);
    waiter.instructions.back().mutate_target(0);
    std::ranges::rotate(waiter.instructions, waiter.instructions.end() - 2);
  }
  return program;
}

ProgramT crossedCycles(uint32_t workers) {
  ProgramT program = samplePipeline(
      {.workers = workers, .microBatches = 1, .idlePipelines = 2});
  // All-reduce s has members s, s+1 and s+2. Worker s starts it before its two
  // other all-reduces and immediately waits for it.
  for (uint32_t w = 0; w < workers; ++w) {
    const std::vector<Instruction> &stream = program.workers[w]->instructions;
    auto firstThat = [&](auto &&is) {
      return static_cast<uint32_t>(std::ranges::find_if(stream, is) -
                                   stream.begin());
    };
    auto isStart = [](const Instruction &each) {
      return each.opcode() == Opcode::AllReduceStart;
    };
    uint32_t start = firstThat(isStart);
    move(program, w, firstThat([&](const Instruction &each) {
           return isStart(each) && each.stage() == w;
         }),
         start);
    move(program, w, firstThat([&](const Instruction &each) {
           return each.opcode() == Opcode::Wait && each.target() == start;
         }),
         start + 1);
  }
  return program;
}

void chainBuffersToTheEnd(WorkerT &worker) {
  const uint64_t bytes = (uint64_t(1) << 48) - 1;
  worker.arena_bytes = UINT64_MAX;
  for (uint64_t at = 0; at < UINT64_MAX - bytes; at += bytes - 1)
    worker.buffers.emplace_back(ValueKind::Activation, at, bytes);
}

} // namespace chimera::program
