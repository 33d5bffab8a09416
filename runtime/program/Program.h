//===- Program.h - The program in memory ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program file's contents as plain C++ values (`ProgramT` and its parts,
// generated from program.fbs, which says what each field means) and the few
// questions that both the compiler and the runtime ask of them.
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

/// The buffers that an instruction reads and those that it writes. Requires
/// that the instruction's range lies inside the worker's operand pool.
std::span<const uint32_t> operandsOf(const WorkerT &worker,
                                     const Instruction &instruction);
std::span<const uint32_t> resultsOf(const WorkerT &worker,
                                    const Instruction &instruction);

/// Whether the instruction is a backward or a weight gradient that begins a
/// gradient sum: it takes none to add to.
bool beginsSum(const Instruction &instruction);

/// The text of an enumerator as messages and dumps spell it, for example
/// "post_send" and "weight gradient". "unknown" for a value out of range.
const char *nameOf(Opcode opcode);
const char *nameOf(ValueKind kind);
const char *nameOf(MessageModel model);
const char *nameOf(DataType type);
/// Whether operations of a worker take effect one after another, as in NCCL.
bool isStreamed(MessageModel model);

/// One line that names what instruction `index` of worker `worker` does, for
/// example "post_send activation pipeline 0 stage 1 micro-batch 2 to worker 2".
/// Safe for any index and for instructions that fail verification.
std::string describe(const ProgramT &program, uint32_t worker, uint32_t index);

/// "file:line:column" of an instruction, empty if the program has none for it.
std::string locationOf(const ProgramT &program, const Instruction &instruction);

/// "1 worker", "2 workers", "3 copies": `singular` as one of them is called.
std::string counted(uint64_t count, const std::string &singular);

/// After how many updates an action of `stage` on micro-batch `microBatch` of a
/// step reads the weights, by the rule of `updates`: with a
/// flush those of all steps before; PipeDream's micro-batch k of the run max(0,
/// k - (stages after this one)); 2BW's step k max(0, k - 1).
uint64_t versionRead(const ProgramT &program, uint32_t stage, uint64_t step,
                     uint64_t microBatch);

/// Whether values of a kind are opaque: they lie in no arena but are a stage's
/// own.
inline bool isStash(ValueKind kind) {
  return kind == ValueKind::Stash || kind == ValueKind::WeightStash;
}

/// Bytes of a stage's parameters, with which its weights begin, and of their
/// gradient.
inline uint64_t gradientBytes(const Stage &stage) {
  return stage.weights_bytes() - stage.copy_bytes();
}

/// How many updates of each stage's weights a step makes.
inline uint64_t updatesPerStep(const ProgramT &program) {
  return program.updates == Updates::EachMicroBatch ? program.micro_batches : 1;
}

/// Which update of its stage's weights an optimizer step in a step is, from 0.
/// Requires a verified label.
inline uint64_t updateOf(const ProgramT &program, const Instruction &update,
                         uint64_t step) {
  return step * (program.micro_batches / update.micro_batches()) +
         update.micro_batch() / update.micro_batches();
}

/// Whether an all-reduce sums gradients of the first and of the last stage,
/// those of tied parameters. Requires contributions.
inline bool reducesTied(const CommunicatorT &communicator) {
  return communicator.contributions.front().stage() !=
         communicator.contributions.back().stage();
}

/// Where in the weights of `stage`, of so many, its tied parameters begin; none
/// of a stage that has none.
inline std::optional<uint64_t> tiedOffset(const Tied *tied, size_t stages,
                                          uint32_t stage) {
  if (tied && stage == 0)
    return tied->first_offset();
  if (tied && stage + 1 == stages)
    return tied->last_offset();
  return std::nullopt;
}

inline std::optional<uint64_t> tiedOffset(const ProgramT &program,
                                          uint32_t stage) {
  return tiedOffset(program.tied.get(), program.stages.size(), stage);
}

/// Which piece of the stage's gradient is that of its tied parameters, which
/// are at one end: 0 or 1 of two; none of a stage that has none.
inline std::optional<unsigned> tiedPiece(const Tied *tied, size_t stages,
                                         uint32_t stage) {
  std::optional<uint64_t> offset = tiedOffset(tied, stages, stage);
  return offset ? std::optional<unsigned>(*offset == 0 ? 0 : 1) : std::nullopt;
}

/// Where buckets may begin in the gradient, or the tied or other part of it,
/// that they are cut from, in bytes: there no element is cut, of whatever type.
/// So a sum in buckets is the sum of the whole, also in the words of integer
/// stages, of which only the last may be short.
inline constexpr uint64_t kBucketAlignment = 8;

/// The `buffer_alignment` of compiled programs: where buffers begin in the
/// arena. A piece of a gradient begins where it begins in the gradient.
inline constexpr uint32_t kBufferAlignment = 64;
/// Others that a file may have. A page is the most that anything asks for.
inline constexpr uint32_t kLeastBufferAlignment = 8,
                          kMostBufferAlignment = 4096;

// What no program reaches (see runtime/proof/Verify.h): more is a mistake, or
// malice.
inline constexpr uint64_t kMaxBytes = (uint64_t(1) << 48) - 1;
inline constexpr uint64_t kMaxRanks = uint64_t(1) << 20;
inline constexpr size_t kMaxText = 4096;

/// Ranks that run the program: workers times data-parallel copies.
inline uint32_t rankCount(const ProgramT &program) {
  return static_cast<uint32_t>(program.workers.size()) * program.data_parallel;
}

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_PROGRAM_H
