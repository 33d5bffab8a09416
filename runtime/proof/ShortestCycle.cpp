//===- ShortestCycle.cpp - A shortest cycle of a graph --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each node in ascending order, a breadth-first search finds the shortest
// cycle through this node. After the search, the node is removed from the
// graph, because all its cycles have been considered. Then nodes without
// successors are removed, one after another: no cycle passes through them, so
// they need no search. If the cycles of a graph have no common nodes, the
// search therefore takes linear time.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/ShortestCycle.h"

#include <algorithm>
#include <numeric>

namespace chimera::program::verify {

namespace {

constexpr uint32_t kNever = UINT32_MAX;
/// The maximum number of visits to edges, divided by the number of nodes and
/// edges.
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
    // Begin with any cycle: its length limits the depth of the search. If the
    // search finds no shorter cycle in time, this cycle is the result.
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
  /// A cycle that is found quickly: goes from node 0 to its first successor,
  /// and so on, until a node is visited a second time.
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

  /// The shortest cycle through `first`, if it has at most `most` nodes. If
  /// there are several, the lexicographically smallest. Empty if there is none.
  std::vector<uint32_t> cycleFrom(uint32_t first, uint64_t most) {
    // Lists of successors are ascending. So the search reaches each node first
    // on the lexicographically smallest of the shortest paths to this node. If
    // several nodes share a list, the list is visited only for the first of
    // these nodes: a second visit would reach no new node.
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
  uint64_t looks; ///< number of visits to edges that are still allowed
  std::vector<bool> isRemoved;
  // The state of one search, by node. `parent` and `depth` of a node are valid
  // if `reachedFrom` of the node is the first node of the current search.
  std::vector<uint32_t> reachedFrom, parent, depth;
  std::vector<uint32_t> openedFrom; ///< by list, like `reachedFrom`
  // For the removal of nodes. `left` is, by list, the number of nodes in the
  // list that are not removed. `users` are, by list, the nodes that have this
  // list of successors. `holders` are, by node, the lists that contain the
  // node.
  std::vector<uint64_t> left;
  std::vector<std::vector<uint32_t>> users;
  std::vector<std::vector<uint32_t>> holders;
};

} // namespace

std::vector<uint32_t> shortestCycle(const Graph &graph) {
  return Search(graph).run();
}

} // namespace chimera::program::verify
