//===- ShortestCycle.h - A short way round in a graph -----------*- C++ -*-===//
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

/// A directed graph in which many nodes may share their successors, as the
/// members of an all-reduce that wait for the others do.
struct Graph {
  /// By node, the list of its successors.
  std::vector<uint32_t> listOf;
  /// Each holds nodes, ascending, each once.
  std::vector<std::vector<uint32_t>> lists;
};

/// The nodes of the shortest cycle, in order, beginning with its smallest; of
/// several shortest ones the smallest, node by node. Requires that every node
/// has a successor, so that there is a cycle. Finding the shortest cycle of a
/// graph takes time that is not linear in its size in the worst case: after
/// some dozens of looks at each edge the best cycle that was found by then is
/// the answer.
std::vector<uint32_t> shortestCycle(const Graph &graph);

} // namespace chimera::program::verify

#endif // CHIMERA_RUNTIME_PROOF_SHORTESTCYCLE_H
