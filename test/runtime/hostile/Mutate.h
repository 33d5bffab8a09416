//===- Mutate.h - Changes of valid programs ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes of the program in memory, so that a refusal is the verifier's and not
// a checksum's. Most of them break a program and a few happen not to; those
// that keep its meaning must be accepted.
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
  /// Changes a verified program, or one that others have changed. False where
  /// it has nothing to change.
  bool (*apply)(program::ProgramT &program, Random &random);
};

/// All of them: the one list that counts, help and tests walk.
std::span<const Mutation> mutations();

/// Rewrites a worker's stream: `edit` gets the indices of its instructions by
/// section and may exchange, move, remove and repeat them. Waits follow their
/// posts, the first of them where there are several.
using Sections = std::vector<std::vector<uint32_t>>;
void rewrite(program::WorkerT &worker,
             const std::function<void(Sections &)> &edit);

/// Whether instructions `i` and `i + 1` of a section can be exchanged without
/// another meaning: no buffer or byte that one writes is the other's, the order
/// inside channels and communicators stays, no post moves behind a wait.
bool areIndependent(const program::WorkerT &worker, uint32_t i);

// The lists that make up `mutations`. Of those that may break a program, the
// first change where instructions stand, the second what they and the tables
// say.
std::span<const Mutation> streamMutations();
std::span<const Mutation> contentMutations();
std::span<const Mutation> keepingMutations();

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_MUTATE_H
