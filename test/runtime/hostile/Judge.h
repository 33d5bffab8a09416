//===- Judge.h - Decides whether a mutant passes ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Judges mutants: randomly changed programs. A mutant passes if verifyProgram
// refuses it. It also passes if verifyProgram accepts it and its runs on
// simulated devices (Run.h) give the same integers as training on one device. A
// mutant that is refused for a deadlock must actually stop. A mutant that keeps
// the meaning of its program must be accepted.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H

#include "runtime/proof/Verify.h"
#include "test/runtime/hostile/Mutate.h"
#include "test/runtime/hostile/Run.h"

#include <array>

namespace chimera::runtime::hostile {

/// The outcomes of the mutants of one kind.
struct Counts {
  static constexpr size_t kRules = program::Violation::kRules;
  uint64_t equal = 0;        ///< accepted, and runs to equal integers
  uint64_t wrong = 0;        ///< not passed: shows a fault of the verifier
  uint64_t refusedEqual = 0; ///< refused, although it runs to equal integers
  /// Refused for a deadlock, although a run on hosts that do not wait
  /// (RunOptions) ends.
  uint64_t refusedEnding = 0;
  std::array<uint64_t, kRules> refused{}; ///< by first violated rule

  uint64_t all() const;
};

class Judge {
public:
  /// `programs` are the originals of all mutants. Requires that they are valid.
  explicit Judge(std::vector<program::ProgramT> programs);

  /// Makes mutant `number`, judges it, and counts the outcome. The mutant is
  /// one of the programs with one to three changes, which depend only on the
  /// number. Returns the failure and the names of the changes, or an empty
  /// string if the mutant passes.
  std::string judge(uint64_t number);

  /// The name of the mutant that `judge` is judging, for a crash handler. Never
  /// throws.
  const char *current() const { return now; }

  /// The counts as text: one line for each kind of mutation, and one for their
  /// sum.
  std::string table() const;
  Counts total() const;

private:
  struct Base {
    program::ProgramT program;
    SequentialResult expected;
  };

  std::string verdict(const program::ProgramT &mutant, const Base &base,
                      uint64_t seed, Counts &counts, bool mustAccept);
  bool isEqual(const program::ProgramT &mutant, const Base &base, uint64_t seed,
               std::string &found) const;

  std::vector<Base> bases;
  std::vector<Counts> counts; // by kind of mutation; the last: several kinds
  char now[200] = "nothing";
};

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H
