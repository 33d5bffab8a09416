//===- Mutate.h - Changes of valid programs ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random changes of programs, made in memory: a changed file would be refused
// for its checksum, before the verifier sees it. Most changes break a program,
// but a few happen not to. Changes that keep the meaning of a program must be
// accepted.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_MUTATE_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_MUTATE_H

#include "runtime/device/simulated/Random.h"
#include "runtime/program/Program.h"

#include <functional>
#include <span>

namespace chimera::runtime::hostile {

using simulated::Random;

struct Mutation {
  const char *name;
  const char *summary;
  bool keepsMeaning;
  /// Changes a verified program, or one that other mutations have changed.
  /// Returns false if there is nothing to change.
  bool (*apply)(program::ProgramT &program, Random &random);
};

/// All mutations. Counts, help texts and tests use this list.
std::span<const Mutation> mutations();

/// Rewrites a worker's instructions. `edit` gets the indices of the
/// instructions, in a list for each section (prologue, body, epilogue). It may
/// exchange, move, remove and repeat indices. Afterwards, each wait refers to
/// the new position of its post. If the post was repeated, it refers to the
/// first copy.
using Sections = std::vector<std::vector<uint32_t>>;
void rewrite(program::WorkerT &worker,
             const std::function<void(Sections &)> &edit);

/// Whether exchanging instructions `i` and `i + 1` of a section keeps the
/// meaning of the program: neither writes a buffer or byte that the other uses,
/// the order of the posts of each channel and communicator stays the same, and
/// no wait comes before its post.
bool areIndependent(const program::WorkerT &worker, uint32_t i);

// The lists of which mutations() consists. Stream mutations change the
// positions of instructions. Content mutations change the contents of
// instructions and tables. Both may break a program. Keeping mutations keep its
// meaning.
std::span<const Mutation> streamMutations();
std::span<const Mutation> contentMutations();
std::span<const Mutation> keepingMutations();

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_MUTATE_H
