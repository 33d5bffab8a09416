//===- ShortestCycleTest.cpp - A short cycle in a graph -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ShortestCycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace chimera::program::verify {
namespace {

/// A graph in which each node has its own list of successors. (In general,
/// nodes may share a list.)
Graph graphOf(std::vector<std::vector<uint32_t>> lists) {
  Graph graph;
  graph.listOf.resize(lists.size());
  std::iota(graph.listOf.begin(), graph.listOf.end(), 0);
  graph.lists = std::move(lists);
  return graph;
}

using Path = std::vector<uint32_t>;

TEST(ShortestCycle, IsTheOnlyOne) {
  EXPECT_EQ(shortestCycle(graphOf({{1}, {2}, {0}})), (Path{0, 1, 2}));
  EXPECT_EQ(shortestCycle(graphOf({{0}})), Path{0});
}

TEST(ShortestCycle, IsTheShortestOfSeveral) {
  // There are two cycles: 0 → 1 → 2 → 0, and 3 ⇄ 4. All nodes lead to the
  // second one.
  EXPECT_EQ(shortestCycle(graphOf({{1, 3}, {2, 3}, {0, 3}, {4}, {3}})),
            (Path{3, 4}));
}

TEST(ShortestCycle, IsTheSmallestOfEquallyShort) {
  EXPECT_EQ(shortestCycle(graphOf({{2, 3}, {3}, {0}, {0, 1}})), (Path{0, 2}));
  EXPECT_EQ(shortestCycle(graphOf({{1}, {2, 3}, {1}, {1}})), (Path{1, 2}));
}

TEST(ShortestCycle, LeadsThroughListsThatAreShared) {
  // Nodes 0, 1 and 2 share the list {3, 4}. Node 3 leads to 1, node 4 to 5, and
  // node 5 to 4.
  Graph graph;
  graph.lists = {{3, 4}, {1}, {5}, {4}};
  graph.listOf = {0, 0, 0, 1, 2, 3};
  EXPECT_EQ(shortestCycle(graph), (Path{1, 3}));
}

/// Finds the shortest cycle by trying all cycles through each node.
Path shortestByTrying(const Graph &graph) {
  auto nodes = static_cast<uint32_t>(graph.listOf.size());
  for (uint32_t length = 1; length <= nodes; ++length)
    for (uint32_t first = 0; first < nodes; ++first) {
      Path path = {first}, best;
      auto extend = [&](auto &self) -> bool {
        for (uint32_t next : graph.lists[graph.listOf[path.back()]]) {
          if (path.size() == length) {
            if (next == first)
              return true;
            continue;
          }
          if (std::ranges::find(path, next) != path.end())
            continue;
          path.push_back(next);
          if (self(self))
            return true;
          path.pop_back();
        }
        return false;
      };
      if (extend(extend))
        return path;
    }
  return {};
}

TEST(ShortestCycle, IsWhatTryingAllCyclesFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Graph graph;
    uint32_t nodes = 1 + random() % 8, lists = 1 + random() % 8;
    for (uint32_t list = 0; list < lists; ++list) {
      std::vector<uint32_t> &entries = graph.lists.emplace_back();
      for (uint32_t node = 0; node < nodes; ++node)
        if (random() % 4 == 0)
          entries.push_back(node);
      if (entries.empty())
        entries.push_back(random() % nodes);
    }
    for (uint32_t node = 0; node < nodes; ++node)
      graph.listOf.push_back(random() % lists);
    EXPECT_EQ(shortestCycle(graph), shortestByTrying(graph)) << round;
  }
}

// A quadratic algorithm would take an hour.
TEST(ShortestCycle, EndsSoonInLargeGraphs) {
  constexpr uint32_t kNodes = 300000;
  std::vector<std::vector<uint32_t>> ring(kNodes);
  for (uint32_t node = 0; node < kNodes; ++node)
    ring[node] = {(node + 1) % kNodes};
  EXPECT_EQ(shortestCycle(graphOf(ring)).size(), kNodes);
  // Add edges from each node to the node 7 further in the ring.
  for (uint32_t node = 0; node < kNodes; ++node) {
    ring[node].push_back((node + 7) % kNodes);
    std::ranges::sort(ring[node]);
  }
  EXPECT_GE(shortestCycle(graphOf(ring)).size(), kNodes / 7);
  // All nodes have edges to all nodes.
  Graph everybody;
  everybody.listOf.assign(kNodes, 0);
  everybody.lists.emplace_back(kNodes);
  std::iota(everybody.lists[0].begin(), everybody.lists[0].end(), 0);
  EXPECT_EQ(shortestCycle(everybody), Path{0});
}

} // namespace
} // namespace chimera::program::verify
