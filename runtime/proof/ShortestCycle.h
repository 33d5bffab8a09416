//===- ShortestCycle.h - A shortest cycle of a graph ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search for the shortest cycle of a graph. Only verifyDeadlock uses it, to
// show users why workers wait for each other.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H
#define CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H

#include <cstdint>
#include <vector>

namespace chimera::program::verify {

/// A directed graph. Nodes with the same successors may share one list of
/// successors. For example, all stuck members of an all-reduce wait for the
/// same other members.
struct Graph {
  /// For each node, the index of its list of successors.
  std::vector<uint32_t> listOf;
  /// Lists of nodes, each ascending and without duplicates.
  std::vector<std::vector<uint32_t>> lists;
};

/// Returns the nodes of the shortest cycle, in the order of the cycle,
/// beginning with the smallest node. If there are several shortest cycles,
/// returns the lexicographically smallest. Requires that every node has a
/// successor, so there is a cycle. The exact search can take more than linear
/// time. So the search stops after it has visited each edge 64 times on
/// average. In this case, it returns the shortest cycle that it has found so
/// far.
std::vector<uint32_t> shortestCycle(const Graph &graph);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H
