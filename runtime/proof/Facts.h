//===- Facts.h - The parts of verifyProgram ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function for each rule group of Verify.h. Each assumes that the functions
// before it found nothing, and fills in facts that the functions after it use.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_FACTS_H
#define CHIMERA_RUNTIME_PROOF_FACTS_H

#include "runtime/program/Pieces.h"
#include "runtime/proof/Verify.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace chimera::program::verify {

using Rule = Violation::Rule;

inline constexpr uint32_t kNone = UINT32_MAX;

/// Prologue, body and epilogue of a worker's stream, as index ranges.
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

/// Runs that together show every way in which one section can follow another:
/// their sections in order, each with its step. Without a flush a run of one
/// step has no body. A body follows the prologue or another body, and every
/// later body begins like the second one, which verifyBuffers and verifyWeights
/// check.
struct Run {
  size_t section;
  uint64_t step;
};
inline std::vector<std::vector<Run>> runsOf(const ProgramT &program) {
  if (program.updates == Updates::Flush)
    return {{{kBody, 0}}};
  return {{{kPrologue, 0}, {kBody, 0}, {kBody, 1}, {kEpilogue, 2}},
          {{kPrologue, 0}, {kEpilogue, 0}}};
}

/// A worker that contributes to a communicator, and the numbers of its
/// contributions there, ascending.
struct Member {
  uint32_t worker;
  std::vector<uint32_t> contributions;
};

/// Facts that one rule group finds and another one uses. The outer index of
/// nested vectors is the worker.
struct Facts {
  /// Set when the pipelines have been verified.
  std::optional<Pieces> pieces;
  /// Whether a piece is recomputed on a stage, so that its forward keeps no
  /// stash; indexed by stage, then piece. Empty if nothing is recomputed.
  std::vector<bool> recomputed;
  /// The members of each communicator, ascending.
  std::vector<std::vector<Member>> members;
  /// `worker` as a member of a communicator; null if it is not a member.
  const Member *memberOf(uint32_t communicator, uint32_t worker) const;
  /// For each post and start the wait that completes it, else kNone.
  std::vector<std::vector<uint32_t>> waitOf;
  /// For each post the index of the post that it matches, on its target; for
  /// each start the number of its all-reduce (the same at every member).
  std::vector<std::vector<uint32_t>> mate;
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
  /// Names the instruction before `message`.
  void add(Rule rule, uint32_t worker, uint32_t index,
           const std::string &message) {
    if (!full())
      addAt(rule, worker, index, name(worker, index) + ": " + message);
  }
  /// Leaves it to `message` to name the instruction.
  void addAt(Rule rule, uint32_t worker, uint32_t index, std::string message) {
    if (!full())
      list.push_back({rule, std::move(message), worker, index});
  }

  /// "worker 1 instruction 5 (forward …) at model.mlir:3:1".
  std::string name(uint32_t worker, uint32_t index) const;

  std::vector<Violation> list;

private:
  const ProgramT &program;
};

inline void structure(Report &report, std::string message) {
  report.add(Rule::Structure, std::move(message));
}

/// Verifies everything but the instructions: that all tables are there, limits,
/// placement, sections, communicators and states.
void verifyTables(const ProgramT &program, Facts &facts, Report &report);
// Parts of it: numbers and texts, each by itself; communicators.
void verifyLimits(const ProgramT &program, Report &report);
void verifyCommunicators(const ProgramT &program, Facts &facts, Report &report);
/// Verifies each instruction by itself: indices, operands, label.
void verifyInstructions(const ProgramT &program, const Facts &facts,
                        Report &report);
/// Verifies that all streams together have the actions that the pipelines ask
/// for.
void verifyActions(const ProgramT &program, Facts &facts, Report &report);
void verifyWaits(const ProgramT &program, Facts &facts, Report &report);
void verifyMatching(const ProgramT &program, Facts &facts, Report &report);
void verifyDeadlock(const ProgramT &program, const Facts &facts,
                    Report &report);

/// The bytes that a worker holds, by the definition in Verify.h.
struct Footprint {
  uint64_t peak;
  uint32_t peakInstruction; ///< the first at which it is reached
  uint64_t atStated;        ///< the most at the instruction that is stated
  /// Only for workers that have a cap: the most bytes of stashes at a time, and
  /// the first instruction at which there are so many.
  uint64_t stashes = 0;
  uint32_t stashInstruction = 0;
};
std::vector<Footprint> verifyBuffers(const ProgramT &program, Report &report);
/// Verifies that each instruction finds the right tokens, labels, activation,
/// gradient, stash or loss in its operands.
void verifyValues(const ProgramT &program, const Facts &facts, Report &report);
/// Verifies which version of the weights each action reads, and which gradients
/// each update takes.
void verifyWeights(const ProgramT &program, const Facts &facts, Report &report);
void verifyMemory(const ProgramT &program,
                  const std::vector<Footprint> &footprints, Report &report);

/// Gives the results of a rename what is known of its operands, all at the same
/// time.
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
