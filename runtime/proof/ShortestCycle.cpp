//===- ShortestCycle.cpp - A shortest cycle of a graph --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each node in ascending order, a breadth-first search finds the shortest
// cycle through that node. After its search, the node is removed. Then every
// node that reaches no cycle any more is removed too: all its cycles pass
// through removed nodes, so it needs no search. A graph whose cycles are
// disjoint therefore takes linear time.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ShortestCycle.h"

#include <algorithm>
#include <numeric>

namespace chimera::program::verify {

namespace {

constexpr uint32_t kNever = UINT32_MAX;
/// The average number of visits to each edge, at most.
constexpr uint64_t kLooks = 64;

class Search {
public:
  explicit Search(const Graph &graph)
      : graph(graph), nodes(static_cast<uint32_t>(graph.listOf.size())),
        isRemoved(nodes), reachedFrom(nodes, kNever), parent(nodes),
        depth(nodes), openedFrom(graph.lists.size(), kNever),
        left(graph.lists.size()), users(graph.lists.size()), holders(nodes) {
    uint64_t size = nodes;
    for (uint32_t list = 0; list < graph.lists.size(); ++list) {
      left[list] = graph.lists[list].size();
      size += left[list];
      for (uint32_t node : graph.lists[list])
        holders[node].push_back(list);
    }
    for (uint32_t node = 0; node < nodes; ++node)
      users[graph.listOf[node]].push_back(node);
    looks = kLooks * size;
  }

  std::vector<uint32_t> run() {
    // Any cycle limits the depth of the search. If the search finds no shorter
    // one in time, this cycle is the answer.
    std::vector<uint32_t> best = walk();
    uint64_t most = best.size();
    for (uint32_t first = 0; first < nodes && looks > 0; ++first) {
      if (isRemoved[first])
        continue;
      std::vector<uint32_t> cycle = cycleFrom(first, most);
      if (!cycle.empty()) {
        best = std::move(cycle);
        most = best.size() - 1;
      }
      remove(first);
    }
    return best;
  }

private:
  /// Follows each node's first successor until a node is visited a second time.
  std::vector<uint32_t> walk() const {
    std::vector<uint32_t> path, indexInPath(nodes, kNever);
    uint32_t node = 0;
    for (; indexInPath[node] == kNever;
         node = graph.lists[graph.listOf[node]].front()) {
      indexInPath[node] = static_cast<uint32_t>(path.size());
      path.push_back(node);
    }
    path.erase(path.begin(), path.begin() + indexInPath[node]);
    std::ranges::rotate(path, std::ranges::min_element(path));
    return path;
  }

  /// The shortest cycle through `first` with at most `most` nodes. If there are
  /// several, the smallest, compared node by node. Empty if there is none.
  std::vector<uint32_t> cycleFrom(uint32_t first, uint64_t most) {
    // Lists are ascending, so the search first reaches a node on the smallest
    // of its shortest paths. If several nodes share a list, it is expanded only
    // for the first of these nodes: the others would reach no new node.
    std::vector<uint32_t> reached = {first};
    depth[first] = 0;
    for (size_t k = 0; k < reached.size(); ++k) {
      uint32_t node = reached[k];
      uint32_t list = graph.listOf[node];
      if (depth[node] >= most || openedFrom[list] == first)
        continue;
      openedFrom[list] = first;
      for (uint32_t next : graph.lists[list]) {
        looks -= looks > 0;
        if (next == first)
          return pathTo(node, first);
        if (isRemoved[next] || reachedFrom[next] == first)
          continue;
        reachedFrom[next] = first;
        parent[next] = node;
        depth[next] = depth[node] + 1;
        reached.push_back(next);
      }
      if (looks == 0)
        break;
    }
    return {};
  }

  std::vector<uint32_t> pathTo(uint32_t node, uint32_t first) const {
    std::vector<uint32_t> path = {node};
    while (node != first)
      path.push_back(node = parent[node]);
    std::ranges::reverse(path);
    return path;
  }

  void remove(uint32_t node) {
    std::vector<uint32_t> pending = {node};
    isRemoved[node] = true;
    while (!pending.empty()) {
      uint32_t gone = pending.back();
      pending.pop_back();
      for (uint32_t list : holders[gone])
        if (--left[list] == 0)
          for (uint32_t user : users[list])
            if (!isRemoved[user]) {
              isRemoved[user] = true;
              pending.push_back(user);
            }
    }
  }

  const Graph &graph;
  uint32_t nodes;
  uint64_t looks; ///< visits to edges that are left
  std::vector<bool> isRemoved;
  // The state of one search. An entry is valid if `reachedFrom` is the node at
  // which the current search began.
  std::vector<uint32_t> reachedFrom, parent, depth;
  std::vector<uint32_t> openedFrom; ///< by list
  // For the removal of nodes. By list: the number of its nodes that are not
  // removed, and the nodes whose successors it has. By node: the lists that
  // contain it.
  std::vector<uint64_t> left;
  std::vector<std::vector<uint32_t>> users;
  std::vector<std::vector<uint32_t>> holders;
};

} // namespace

std::vector<uint32_t> shortestCycle(const Graph &graph) {
  return Search(graph).run();
}

} // namespace chimera::program::verify
