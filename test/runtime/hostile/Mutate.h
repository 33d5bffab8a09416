//===- Mutate.h - Changes of valid programs ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes programs in memory, so that the verifier refuses them and not a
// checksum. Most changes break a program; a few happen not to. Changes that
// keep its meaning must be accepted.
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

/// All mutations: the list that counts, help text and tests use.
std::span<const Mutation> mutations();

/// Rewrites a worker's stream. `edit` gets the indices of its instructions by
/// section and may exchange, move, remove and repeat them. Waits then refer to
/// the new position of their post, the first one if there are several.
using Sections = std::vector<std::vector<uint32_t>>;
void rewrite(program::WorkerT &worker,
             const std::function<void(Sections &)> &edit);

/// Whether exchanging instructions `i` and `i + 1` of a section keeps the
/// meaning: neither writes a buffer or byte that the other uses, the order
/// inside channels and communicators stays, and no post moves after a wait.
bool areIndependent(const program::WorkerT &worker, uint32_t i);

// The lists that make up `mutations`. Two lists may break a program: the first
// changes the positions of instructions, the second changes the contents of
// instructions and tables.
std::span<const Mutation> streamMutations();
std::span<const Mutation> contentMutations();
std::span<const Mutation> keepingMutations();

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_MUTATE_H
