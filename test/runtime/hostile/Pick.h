//===- Pick.h - Random parts of a program -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random parts of a program, and lists of all parts of one kind.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_PICK_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_PICK_H

#include "runtime/device/simulated/Random.h"
#include "runtime/program/Program.h"
#include "test/runtime/program/BucketPrograms.h"

namespace chimera::runtime::hostile {

using simulated::Random;

inline program::WorkerT &anyWorker(program::ProgramT &program, Random &random) {
  return *random.any(program.workers);
}

template <typename Predicate>
std::vector<uint32_t> indicesOf(const program::WorkerT &worker,
                                Predicate predicate) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < worker.instructions.size(); ++i)
    if (predicate(worker.instructions[i]))
      found.push_back(i);
  return found;
}

inline bool isMessage(const program::Instruction &instruction) {
  return instruction.opcode() == program::Opcode::PostSend ||
         instruction.opcode() == program::Opcode::PostRecv;
}
/// Whether an instruction adds to an operand of this kind: a backward of the
/// last stage may add to the loss that it takes (Stage::backward).
inline bool addsToLoss(program::Opcode opcode, program::ValueKind kind) {
  return kind == program::ValueKind::Loss &&
         (opcode == program::Opcode::Backward ||
          opcode == program::Opcode::InputGradient);
}

inline bool isPost(const program::Instruction &instruction) {
  return isMessage(instruction) ||
         instruction.opcode() == program::Opcode::AllReduceStart;
}

/// The indices of the sends to `peer`, of the receives from `peer`, or (for
/// AllReduceStart) of the starts on communicator `peer`.
inline std::vector<uint32_t> messagesOf(const program::WorkerT &worker,
                                        program::Opcode opcode, uint32_t peer) {
  return indicesOf(worker, [&](const program::Instruction &each) {
    return each.opcode() == opcode && each.target() == peer;
  });
}

/// Moves the boundary between two random neighbouring buckets of a gradient by
/// `bytes`, forwards or backwards, in the same way on all workers. Returns
/// false if it changed nothing.
inline bool moveCut(program::ProgramT &program, Random &random, int64_t bytes) {
  auto of = static_cast<uint32_t>(random.below(program.communicators.size()));
  auto bucket = static_cast<uint32_t>(random.below(3));
  return program::moveBucketBoundary(program, of, bucket,
                                     random.oneIn(2) ? bytes : -bytes);
}

/// A channel from one worker to another: the two workers, and the indices of
/// the posts at both.
struct Channel {
  program::WorkerT *source, *destination;
  std::vector<uint32_t> sends, receives;
};
inline Channel anyChannel(program::ProgramT &program, Random &random) {
  auto from = static_cast<uint32_t>(random.below(program.workers.size()));
  Channel channel{program.workers[from].get(), nullptr, {}, {}};
  std::vector<uint32_t> sends =
      indicesOf(*channel.source, [](const program::Instruction &each) {
        return each.opcode() == program::Opcode::PostSend;
      });
  if (sends.empty())
    return channel;
  uint32_t to = channel.source->instructions[random.any(sends)].target();
  if (to >= program.workers.size())
    return channel;
  channel.destination = program.workers[to].get();
  channel.sends = messagesOf(*channel.source, program::Opcode::PostSend, to);
  channel.receives =
      messagesOf(*channel.destination, program::Opcode::PostRecv, from);
  // Use only as many posts as both ends have: another mutation may have removed
  // one end of a message.
  size_t both = std::min(channel.sends.size(), channel.receives.size());
  channel.sends.resize(both);
  channel.receives.resize(both);
  return channel;
}

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_PICK_H
