//===- Program.h - The program in memory ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions on programs that both the compiler and the runtime need. `ProgramT`
// is a program in memory. It is generated from program.fbs, which documents the
// fields.
//
// The functions throw no exceptions. They return errors as values.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_PROGRAM_H
#define CHIMERA_RUNTIME_PROGRAM_PROGRAM_H

#include "runtime/program/program_generated.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace chimera::program {

/// The buffers that an instruction reads (operands) and writes (results).
/// Requires that the instruction's range of operands and results is inside
/// worker.operands.
std::span<const uint32_t> operandsOf(const WorkerT &worker,
                                     const Instruction &instruction);
std::span<const uint32_t> resultsOf(const WorkerT &worker,
                                    const Instruction &instruction);

/// Whether the instruction is a backward or a weight gradient that begins a new
/// gradient sum. If it adds to a sum instead, the sum is one more operand.
bool beginsGradientSum(const Instruction &instruction);

/// The name of an enumerator in messages and dumps, for example "post_send" and
/// "weight gradient". "unknown" for a value out of range.
const char *nameOf(Opcode opcode);
const char *nameOf(ValueKind kind);
const char *nameOf(MessageModel model);
const char *nameOf(DataType type);
const char *nameOf(RateSchedule schedule);
/// Whether the messages and all-reduces of a stream take effect one after
/// another, as in NCCL. See MessageModel in program.fbs.
bool hasStreams(MessageModel model);

/// One line that describes instruction `index` of worker `worker`, for example
/// "post_send activation pipeline 0 stage 1 micro-batch 2 to worker 2". Accepts
/// any numbers, and programs that are not verified.
std::string describe(const ProgramT &program, uint32_t worker, uint32_t index);

/// "file:line:column" of an instruction; empty if the program has no location
/// for it.
std::string locationOf(const ProgramT &program, const Instruction &instruction);

/// A count with a noun, for example "1 worker", "2 workers", "3 copies".
/// `singular` is the singular of the noun.
std::string countWithNoun(uint64_t count, const std::string &singular);

/// The version of the weights that an action of `stage` on micro-batch
/// `microBatch` of step `step` must read. Version v is the result of v updates.
/// The version depends on program.updates. With a flush, it is the number of
/// updates in all earlier steps. In PipeDream (EachMicroBatch), micro-batch k
/// of the run reads version max(0, k - number of stages after this one). In
/// PipeDream-2BW (EachStep), step k reads version max(0, k - 1).
uint64_t versionRead(const ProgramT &program, uint32_t stage, uint64_t step,
                     uint64_t microBatch);

/// Whether values of the kind are stashes. A stash is not in the arena: the
/// stage allocates its memory.
inline bool isStash(ValueKind kind) {
  return kind == ValueKind::Stash || kind == ValueKind::WeightStash;
}

/// The bytes of the gradient of a stage. The parameters have the same size. It
/// does not include the copy of the parameters in another type, at the end of
/// the weights.
inline uint64_t gradientBytes(const Stage &stage) {
  return stage.weights_bytes() - stage.copy_bytes();
}

/// The samples of a step, of all data-parallel copies together: a mini-batch.
inline uint64_t samplesPerStep(const ProgramT &program) {
  return uint64_t{program.micro_batches} * program.data_parallel *
         program.micro_batch_size;
}

/// The number of updates of each stage's weights in a step.
inline uint64_t updatesPerStep(const ProgramT &program) {
  return program.updates == Updates::EachMicroBatch ? program.micro_batches : 1;
}

/// The index of an update among all updates of its weights, from 0 for the
/// first update of step 0. `update` is an optimizer step, and `step` is the
/// step in which it runs. Requires a verified instruction.
inline uint64_t indexOfUpdate(const ProgramT &program,
                              const Instruction &update, uint64_t step) {
  return step * (program.micro_batches / update.micro_batches()) +
         update.micro_batch() / update.micro_batches();
}

/// Whether an all-reduce sums gradients of tied parameters. Its contributions
/// then come from the first and the last stage. Requires at least one
/// contribution.
inline bool reducesTiedParameters(const CommunicatorT &communicator) {
  return communicator.contributions.front().stage() !=
         communicator.contributions.back().stage();
}

/// The offset, in bytes, of the tied parameters in the weights of `stage`. None
/// if the stage has no tied parameters. `stages` is the number of stages.
inline std::optional<uint64_t>
offsetOfTiedParameters(const Tied *tied, size_t stages, uint32_t stage) {
  if (tied && stage == 0)
    return tied->first_offset();
  if (tied && stage + 1 == stages)
    return tied->last_offset();
  return std::nullopt;
}

inline std::optional<uint64_t> offsetOfTiedParameters(const ProgramT &program,
                                                      uint32_t stage) {
  return offsetOfTiedParameters(program.tied.get(), program.stages.size(),
                                stage);
}

/// The gradient of a stage with tied parameters has two pieces: the tied
/// parameters at one end, and the rest. Returns the index, 0 or 1, of the tied
/// piece. None if the stage has no tied parameters.
inline std::optional<unsigned> indexOfTiedPiece(const Tied *tied, size_t stages,
                                                uint32_t stage) {
  std::optional<uint64_t> offset = offsetOfTiedParameters(tied, stages, stage);
  return offset ? std::optional<unsigned>(*offset == 0 ? 0 : 1) : std::nullopt;
}

/// A bucket is a piece of a gradient that is summed separately. It begins at a
/// multiple of this many bytes from the beginning of the gradient, or from the
/// beginning of its tied or untied piece. No element of any type crosses a
/// multiple of 8 bytes. So the sums of the buckets are equal to the sum of the
/// whole gradient. This is also true for stages of integers (ExactStage.h):
/// their elements have 8 bytes, and only the last one may be shorter.
inline constexpr uint64_t kBucketAlignment = 8;

/// The `buffer_alignment` of compiled programs, in bytes. Every buffer begins
/// at a multiple of it, except a piece of a gradient: a piece may begin
/// anywhere inside its gradient.
inline constexpr uint32_t kBufferAlignment = 64;
/// The limits of `buffer_alignment` in a file. Nothing needs more than the
/// alignment of a memory page.
inline constexpr uint32_t kLeastBufferAlignment = 8, kMaxBufferAlignment = 4096;

// Limits that runtime/proof/Verify.h checks. No real program reaches them, so a
// file that exceeds them is damaged or malicious.
inline constexpr uint64_t kMaxBytes = (uint64_t(1) << 48) - 1;
inline constexpr uint64_t kMaxRanks = uint64_t(1) << 20;
inline constexpr size_t kMaxStringBytes = 4096;

/// The number of ranks that run the program: workers times data-parallel
/// copies.
inline uint32_t rankCount(const ProgramT &program) {
  return static_cast<uint32_t>(program.workers.size()) * program.data_parallel;
}

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PROGRAM_H
