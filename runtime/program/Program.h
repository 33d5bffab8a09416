//===- Program.h - The program in memory ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program file's contents as plain C++ values, and queries that both the
// compiler and the runtime need. The values are `ProgramT` and its parts, which
// are generated from program.fbs. That file documents the fields.
//
// This library uses no exceptions: failures are returned.
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
/// Requires that the instruction's range is inside the worker's operand pool.
std::span<const uint32_t> operandsOf(const WorkerT &worker,
                                     const Instruction &instruction);
std::span<const uint32_t> resultsOf(const WorkerT &worker,
                                    const Instruction &instruction);

/// Whether the instruction is a backward or a weight gradient that begins a new
/// gradient sum, so that its operands include no sum so far.
bool beginsSum(const Instruction &instruction);

/// The name of an enumerator in messages and dumps, for example "post_send" and
/// "weight gradient". "unknown" for a value out of range.
const char *nameOf(Opcode opcode);
const char *nameOf(ValueKind kind);
const char *nameOf(MessageModel model);
const char *nameOf(DataType type);
/// Whether operations of a worker take effect one after another, as in NCCL.
bool isStreamed(MessageModel model);

/// One line that describes instruction `index` of worker `worker`, for example
/// "post_send activation pipeline 0 stage 1 micro-batch 2 to worker 2". Accepts
/// any index, and instructions that fail verification.
std::string describe(const ProgramT &program, uint32_t worker, uint32_t index);

/// "file:line:column" of an instruction; empty if the program has no location
/// for it.
std::string locationOf(const ProgramT &program, const Instruction &instruction);

/// A count with a noun: "1 worker", "2 workers", "3 copies". `singular` is the
/// noun's singular.
std::string counted(uint64_t count, const std::string &singular);

/// The version of the weights that an action of `stage` on micro-batch
/// `microBatch` of step `step` must read. A version is the number of updates
/// that made it. It depends on the program's `updates`. With a flush, it is the
/// number of updates in all earlier steps. In PipeDream, micro-batch k of the
/// run reads version max(0, k - number of stages after this one). In
/// PipeDream-2BW, step k reads version max(0, k - 1).
uint64_t versionRead(const ProgramT &program, uint32_t stage, uint64_t step,
                     uint64_t microBatch);

/// Whether values of the kind are opaque: they are not in the arena, the stage
/// keeps them itself.
inline bool isStash(ValueKind kind) {
  return kind == ValueKind::Stash || kind == ValueKind::WeightStash;
}

/// Bytes of a stage's parameters, without the copy at the end of its weights.
/// Their gradient has the same size.
inline uint64_t gradientBytes(const Stage &stage) {
  return stage.weights_bytes() - stage.copy_bytes();
}

/// The number of updates of each stage's weights in a step.
inline uint64_t updatesPerStep(const ProgramT &program) {
  return program.updates == Updates::EachMicroBatch ? program.micro_batches : 1;
}

/// An optimizer step is one update of its stage's weights. Returns the number
/// of this update, from 0, if the optimizer step is in step `step`. Requires a
/// verified label.
inline uint64_t updateOf(const ProgramT &program, const Instruction &update,
                         uint64_t step) {
  return step * (program.micro_batches / update.micro_batches()) +
         update.micro_batch() / update.micro_batches();
}

/// Whether an all-reduce sums gradients of tied parameters, which come from the
/// first and the last stage. Requires contributions.
inline bool reducesTiedParameters(const CommunicatorT &communicator) {
  return communicator.contributions.front().stage() !=
         communicator.contributions.back().stage();
}

/// The offset, in bytes, of the tied parameters in the weights of `stage`,
/// where `stages` is the number of stages. None if the stage has no tied
/// parameters.
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

/// A stage with tied parameters has two pieces of its gradient: the tied
/// parameters at one end, and the rest. Returns the index, 0 or 1, of the tied
/// piece; none if the stage has no tied parameters.
inline std::optional<unsigned> indexOfTiedPiece(const Tied *tied, size_t stages,
                                                uint32_t stage) {
  std::optional<uint64_t> offset = offsetOfTiedParameters(tied, stages, stage);
  return offset ? std::optional<unsigned>(*offset == 0 ? 0 : 1) : std::nullopt;
}

/// The alignment of buckets, in bytes, in the gradient or the part of it (tied
/// or not tied) that is split into them. No element of any type crosses a
/// multiple of 8 bytes. So a reduction in buckets gives the same sum as a
/// reduction of the whole gradient. This is also true for integer stages: they
/// use 8-byte words, and only the last word may be shorter.
inline constexpr uint64_t kBucketAlignment = 8;

/// The `buffer_alignment` of compiled programs, in bytes. It does not apply to
/// a piece of a gradient, which begins at its place in the gradient.
inline constexpr uint32_t kBufferAlignment = 64;
/// The limits of `buffer_alignment` in a file. No user of a buffer needs more
/// than a page.
inline constexpr uint32_t kLeastBufferAlignment = 8, kMaxBufferAlignment = 4096;

// Limits that no real program reaches (see runtime/proof/Verify.h). A file that
// exceeds them is wrong or malicious.
inline constexpr uint64_t kMaxBytes = (uint64_t(1) << 48) - 1;
inline constexpr uint64_t kMaxRanks = uint64_t(1) << 20;
inline constexpr size_t kMaxText = 4096;

/// The number of ranks that run the program: workers times data-parallel
/// copies.
inline uint32_t rankCount(const ProgramT &program) {
  return static_cast<uint32_t>(program.workers.size()) * program.data_parallel;
}

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PROGRAM_H
