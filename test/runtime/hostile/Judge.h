//===- Judge.h - Refused, or equal integers ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mutant passes if verifyProgram refuses it, or if verifyProgram accepts it
// and it runs under hostile seeds to the integers of one device. A mutant that
// is refused for a deadlock must stop. A mutant that keeps the meaning must be
// accepted.
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
  uint64_t equal = 0;        ///< accepted, and equal integers
  uint64_t wrong = 0;        ///< neither refused nor equal: a hole
  uint64_t refusedEqual = 0; ///< refused, although integers are equal
  /// Refused for a deadlock, although it ends if hosts do not wait.
  uint64_t refusedEnding = 0;
  std::array<uint64_t, kRules> refused{}; ///< by the first violation's rule

  uint64_t all() const;
};

class Judge {
public:
  /// Requires valid programs.
  explicit Judge(std::vector<program::ProgramT> programs);

  /// Makes and counts mutant `number`: one or more changes of one of the
  /// programs, which depend only on the number. Returns the failure and the
  /// mutations that made it, or an empty string.
  std::string judge(uint64_t number);

  /// The mutant that is being judged, for a crash handler. Never throws.
  const char *current() const { return now; }

  /// One line for each kind of mutation, and one for all.
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
  std::vector<Counts> counts; // by mutation; last: several mutations
  char now[200] = "nothing";
};

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H
