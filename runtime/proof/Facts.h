//===- Facts.h - The parts of verifyProgram ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of verifyProgram (Verify.h), one for each group of rules. They
// are called in the order of this file. Each function assumes that the earlier
// functions found no violation. It records facts that later functions use.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_FACTS_H
#define CHIMERA_RUNTIME_PROOF_FACTS_H

#include "runtime/program/BackwardPieces.h"
#include "runtime/program/Program.h"
#include "runtime/proof/Violation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace chimera::program::verify {

using Rule = Violation::Rule;

inline constexpr uint32_t kNone = UINT32_MAX;

/// The prologue, body and epilogue of a worker's stream, as index ranges.
inline constexpr size_t kPrologue = 0, kBody = 1, kEpilogue = 2;
inline constexpr size_t kSections = 3;
struct Section {
  uint32_t begin, end;
};
inline std::array<Section, kSections> sectionsOf(const WorkerT &worker) {
  auto size = static_cast<uint32_t>(worker.instructions.size());
  return {{{0, worker.body_begin},
           {worker.body_begin, worker.body_end},
           {worker.body_end, size}}};
}

/// A section in an execution of the program, with the number of its step.
/// runsOf returns executions in which every possible pair of consecutive
/// sections occurs. For a program without a flush, these are two executions:
/// one with two bodies, and one without a body. Two bodies are enough, because
/// verifyBuffers and verifyWeights check that a third body would begin like the
/// second.
struct SectionRun {
  size_t section;
  uint64_t step;
};
inline std::vector<std::vector<SectionRun>> runsOf(const ProgramT &program) {
  if (program.updates == Updates::Flush)
    return {{{kBody, 0}}};
  return {{{kPrologue, 0}, {kBody, 0}, {kBody, 1}, {kEpilogue, 2}},
          {{kPrologue, 0}, {kEpilogue, 0}}};
}

/// Identifies an instruction by its worker and its index.
struct InstructionRef {
  uint32_t worker;
  uint32_t index;
};

/// A worker that contributes to a communicator, and the indices of its
/// contributions in the communicator's list, ascending.
struct Member {
  uint32_t worker;
  std::vector<uint32_t> contributions;
};

/// Facts that one function finds and later functions use. In `waitOf` and
/// `match`, the outer index is the worker.
struct Facts {
  /// Set when the pipelines have been verified.
  std::optional<BackwardPieces> pieces;
  /// Whether a piece (BackwardPieces.h) is recomputed on a stage. If it is, its
  /// forward makes no stash for it. Indexed by stage, then piece. Empty if
  /// nothing is recomputed.
  std::vector<bool> recomputed;
  /// The members of each communicator, in ascending order of workers.
  std::vector<std::vector<Member>> members;
  /// `worker` as a member of a communicator; null if it is not a member.
  const Member *memberOf(uint32_t communicator, uint32_t worker) const;
  /// For each post of a message and each start of an all-reduce, the index of
  /// the wait that completes it. kNone for other instructions.
  std::vector<std::vector<uint32_t>> waitOf;
  /// For each post, the index of the matching post on the peer worker. For each
  /// start, the number of its all-reduce, which is the same at every member.
  std::vector<std::vector<uint32_t>> match;
  /// The communicator of each all-reduce.
  std::vector<uint32_t> communicatorOf;
};

inline const Member *Facts::memberOf(uint32_t communicator,
                                     uint32_t worker) const {
  const std::vector<Member> &list = members[communicator];
  auto found = std::ranges::lower_bound(list, worker, {}, &Member::worker);
  return found != list.end() && found->worker == worker ? &*found : nullptr;
}

class Report {
public:
  explicit Report(const ProgramT &program) : program(program) {}

  static constexpr size_t kLimit = 20;

  bool full() const { return list.size() >= kLimit; }
  bool empty() const { return list.empty(); }

  void add(Rule rule, std::string message) {
    if (!full())
      list.push_back({rule, std::move(message)});
  }
  /// Adds a violation. Its text is the name of the instruction and then
  /// `message`.
  void add(Rule rule, uint32_t worker, uint32_t index,
           const std::string &message) {
    if (!full())
      addAt(rule, worker, index, name(worker, index) + ": " + message);
  }
  /// Adds a violation. Its text is `message`, which must name the instruction.
  void addAt(Rule rule, uint32_t worker, uint32_t index, std::string message) {
    if (!full())
      list.push_back({rule, std::move(message), worker, index});
  }

  /// For example "worker 1 instruction 5 (forward …) at model.mlir:3:1".
  std::string name(uint32_t worker, uint32_t index) const;

  std::vector<Violation> list;

private:
  const ProgramT &program;
};

inline void reportStructure(Report &report, std::string message) {
  report.add(Rule::Structure, std::move(message));
}

/// Verifies everything except the instructions: that all tables exist, limits,
/// placement, sections, communicators and states.
void verifyTables(const ProgramT &program, Facts &facts, Report &report);
// verifyTables calls these two functions. verifyLimits checks each number and
// each text by itself. verifyCommunicators checks the communicators.
void verifyLimits(const ProgramT &program, Report &report);
void verifyCommunicators(const ProgramT &program, Facts &facts, Report &report);
/// Verifies each instruction by itself: indices, operands, label.
void verifyInstructions(const ProgramT &program, const Facts &facts,
                        Report &report);
/// Verifies that the workers together have the actions (forwards, backwards,
/// ...) that the pipelines require, each once.
void verifyActions(const ProgramT &program, Facts &facts, Report &report);
void verifyWaits(const ProgramT &program, Facts &facts, Report &report);
void verifyMatching(const ProgramT &program, Facts &facts, Report &report);
void verifyDeadlock(const ProgramT &program, const Facts &facts,
                    Report &report);

/// The bytes in use of a worker, as defined in Verify.h.
struct MemoryUse {
  uint64_t peak;
  uint32_t peakInstruction;   ///< the first instruction with this peak
  uint64_t bytesAtStatedPeak; ///< the maximum bytes in use at the program's
                              ///< `peak_instruction`
  /// Only for workers with a memory cap: the maximum bytes of live stashes, and
  /// the first instruction with this maximum.
  uint64_t stashes = 0;
  uint32_t stashInstruction = 0;
};
std::vector<MemoryUse> verifyBuffers(const ProgramT &program, Report &report);
/// Verifies that the operands of each instruction have the right tokens,
/// labels, activation, gradient, stash or loss.
void verifyValues(const ProgramT &program, const Facts &facts, Report &report);
/// Verifies the version of the weights that each action reads, and the
/// gradients in the sum that each update uses.
void verifyWeights(const ProgramT &program, const Facts &facts, Report &report);
void verifyMemory(const ProgramT &program,
                  const std::vector<MemoryUse> &memoryUse, Report &report);

/// Applies a rename to a list that has one fact for each buffer: result k gets
/// the fact of operand k, for all k at the same time.
template <typename Known>
void rename(const WorkerT &worker, const Instruction &instruction,
            std::vector<Known> &ofBuffers) {
  std::vector<Known> moved;
  for (uint32_t buffer : operandsOf(worker, instruction))
    moved.push_back(ofBuffers[buffer]);
  std::span<const uint32_t> results = resultsOf(worker, instruction);
  for (size_t k = 0; k < results.size(); ++k)
    ofBuffers[results[k]] = moved[k];
}

inline std::string text(uint64_t value) { return std::to_string(value); }

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_FACTS_H
