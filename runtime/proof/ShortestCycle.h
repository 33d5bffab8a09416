//===- ShortestCycle.h - A shortest cycle of a graph ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to verifyDeadlock, which shows people why a program is stuck.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H
#define CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H

#include <cstdint>
#include <vector>

namespace chimera::program::verify {

/// A directed graph in which many nodes may share a list of successors. For
/// example, all members of an all-reduce wait for the same other members.
struct Graph {
  /// For each node, the index of its list of successors.
  std::vector<uint32_t> listOf;
  /// Lists of nodes, each ascending and without duplicates.
  std::vector<std::vector<uint32_t>> lists;
};

/// Returns the nodes of the shortest cycle, in order, starting with the
/// smallest. If there are several, returns the smallest, compared node by node.
/// Requires that every node has a successor, so that there is a cycle. The
/// exact search can take more than linear time, so it stops after visiting each
/// edge a few dozen times on average and returns the shortest cycle found until
/// then.
std::vector<uint32_t> shortestCycle(const Graph &graph);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H
