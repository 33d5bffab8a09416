//===- Judge.h - Refused, or equal integers ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mutant is as it should be if verifyProgram refuses it, or accepts it and it
// runs under hostile seeds to the integers of one device; one that is refused
// for a deadlock must stop; one whose meaning was kept must be accepted.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H

#include "runtime/proof/Verify.h"
#include "test/runtime/hostile/Mutate.h"
#include "test/runtime/hostile/Run.h"

#include <array>

namespace chimera::runtime::hostile {

/// Mutants of one kind by what became of them.
struct Counts {
  static constexpr size_t kRules = program::Violation::kRules;
  uint64_t equal = 0;        ///< accepted, and equal integers
  uint64_t wrong = 0;        ///< neither: a hole
  uint64_t refusedEqual = 0; ///< refused, though integers are equal
  /// Refused for a deadlock, though it ends where hosts do not wait.
  uint64_t refusedEnding = 0;
  std::array<uint64_t, kRules> refused{}; ///< by the first violation's rule

  uint64_t all() const;
};

class Judge {
public:
  /// Requires valid programs.
  explicit Judge(std::vector<program::ProgramT> programs);

  /// Makes mutant `number`, a change or several of one of the programs that
  /// depends on nothing but the number, and counts it. What is wrong with it,
  /// with the mutations that made it; empty if nothing is.
  std::string judge(uint64_t number);

  /// What is being judged, for who handles a crash. Never throws.
  const char *current() const { return now; }

  /// A line for each kind of mutation, and one for all.
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
  std::vector<Counts> counts; // by mutation, then those of several
  char now[200] = "nothing";
};

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_JUDGE_H
