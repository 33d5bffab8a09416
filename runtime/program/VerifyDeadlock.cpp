//===- VerifyDeadlock.cpp - Abstract execution of the streams -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs every stream as far as it gets, a worker at a time. What a wait needs
// never becomes false again, so the order in which workers run does not matter:
// all end, or the state in which they are stuck is the same. In that state the
// reasons why nothing goes on are a graph; its shortest cycle is the verdict.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/VerifyInternal.h"

#include <algorithm>
#include <map>

namespace chimera::program::verify {

namespace {

/// A post or start, somewhere.
struct Site {
  uint32_t worker;
  uint32_t index;
};

/// The operations of one communicator on one worker, under a stream model.
struct Stream {
  /// The posts in [begin, end) that use this communicator.
  struct Operation {
    uint32_t begin, end;
  };
  std::vector<Operation> queue; ///< as posted
  size_t head = 0;              ///< the one that is in effect, if any
  uint32_t open = 0;            ///< its posts without a partner in effect
};

class Machine {
public:
  Machine(const ProgramT &program, const Facts &facts, Report &report)
      : program(program), facts(facts), report(report),
        buffered(program.message_model == MessageModel::Buffered),
        streamed(program.message_model == MessageModel::StreamPerDirection ||
                 program.message_model == MessageModel::StreamPerPair),
        next(program.workers.size()), done(program.workers.size()),
        arrived(facts.communicatorOf.size()) {
    for (size_t w = 0; w < done.size(); ++w)
      done[w].resize(program.workers[w]->instructions.size());
    if (!streamed)
      return;
    inEffect = done;
    streams.resize(next.size());
    std::map<std::vector<uint32_t>, uint32_t> known;
    for (uint32_t c = 0; c < facts.members.size(); ++c) {
      std::vector<uint32_t> workers;
      for (const Member &member : facts.members[c])
        workers.push_back(member.worker);
      sharedBy.push_back(known.try_emplace(workers, c).first->second);
    }
  }

  void run() {
    auto workers = static_cast<uint32_t>(program.workers.size());
    for (uint32_t w = workers; w-- > 0;)
      runnable.push_back(w);
    while (!runnable.empty()) {
      uint32_t w = runnable.back();
      runnable.pop_back();
      advance(w);
      while (!beginning.empty()) {
        auto [worker, key] = beginning.back();
        beginning.pop_back();
        begin(worker, key);
      }
    }
    for (uint32_t w = 0; w < workers; ++w)
      if (isStuck(w))
        return reportCycle();
  }

private:
  const Instruction &at(Site site) const {
    return program.workers[site.worker]->instructions[site.index];
  }
  uint32_t mateOf(Site site) const {
    return facts.mate[site.worker][site.index];
  }
  bool isStart(Site site) const {
    return at(site).opcode() == Opcode::AllReduceStart;
  }
  bool isStuck(uint32_t w) const { return next[w] < done[w].size(); }
  bool isReached(Site site) const { return site.index < next[site.worker]; }
  bool isInEffect(Site site) const {
    return streamed ? inEffect[site.worker][site.index] : isReached(site);
  }

  /// The communicator of a post or start, of those on its worker.
  uint64_t keyOf(Site site) const {
    uint64_t target = at(site).target();
    if (isStart(site))
      return uint64_t(1) << 40 | sharedBy[target];
    bool isOwn = program.message_model == MessageModel::StreamPerDirection &&
                 at(site).opcode() == Opcode::PostSend;
    return target << 1 | isOwn;
  }

  void advance(uint32_t w) {
    const std::vector<Instruction> &stream = program.workers[w]->instructions;
    // What is before `next` is reached, also while the worker runs on.
    for (uint32_t &i = next[w]; i < stream.size(); ++i)
      switch (stream[i].opcode()) {
      case Opcode::PostSend:
      case Opcode::PostRecv:
      case Opcode::AllReduceStart:
        if (streamed)
          enqueue(w, {i, i + 1});
        else
          takeEffect({w, i});
        break;
      case Opcode::Group:
        if (streamed) {
          enqueue(w, {i + 1, i + 1 + stream[i].target()});
          i += stream[i].target();
        }
        break;
      case Opcode::Wait:
        if (!done[w][stream[i].target()])
          return;
        break;
      default:
        break;
      }
  }

  /// One operation for each communicator that the posts use.
  void enqueue(uint32_t w, Stream::Operation operation) {
    std::vector<uint64_t> keys;
    for (uint32_t i = operation.begin; i < operation.end; ++i) {
      uint64_t key = keyOf({w, i});
      if (std::ranges::find(keys, key) != keys.end())
        continue;
      keys.push_back(key);
      Stream &stream = streams[w][key];
      stream.queue.push_back(operation);
      if (stream.head + 1 == stream.queue.size())
        beginning.emplace_back(w, key);
    }
  }

  /// The posts and starts of a stream's head.
  std::vector<Site> headOf(uint32_t w, uint64_t key) const {
    const Stream &stream = streams[w].at(key);
    std::vector<Site> posts;
    Stream::Operation head = stream.queue[stream.head];
    for (uint32_t i = head.begin; i < head.end; ++i)
      if (keyOf({w, i}) == key)
        posts.push_back({w, i});
    return posts;
  }

  void begin(uint32_t w, uint64_t key) {
    std::vector<Site> posts = headOf(w, key);
    streams[w][key].open = static_cast<uint32_t>(posts.size());
    for (Site post : posts) {
      inEffect[post.worker][post.index] = true;
      takeEffect(post);
    }
  }

  void takeEffect(Site site) {
    if (isStart(site)) {
      std::vector<Site> &starts = arrived[mateOf(site)];
      starts.push_back(site);
      if (starts.size() == facts.members[at(site).target()].size())
        for (Site each : starts)
          meet(each);
      return;
    }
    Site peer{at(site).target(), mateOf(site)};
    bool both = isInEffect(peer);
    if (both || (buffered && at(site).opcode() == Opcode::PostSend))
      meet(site);
    if (both)
      meet(peer);
  }

  /// A post or start has all that it needs of others.
  void meet(Site site) {
    if (!streamed)
      return complete(site);
    uint64_t key = keyOf(site);
    Stream &stream = streams[site.worker][key];
    if (--stream.open > 0)
      return;
    for (Site post : headOf(site.worker, key))
      complete(post);
    if (++stream.head < stream.queue.size())
      beginning.emplace_back(site.worker, key);
  }

  /// Wakes the worker if it waits for that.
  void complete(Site site) {
    auto [w, i] = site;
    if (done[w][i])
      return;
    done[w][i] = true;
    // A running worker stands at a post.
    if (next[w] == facts.waitOf[w][i])
      runnable.push_back(w);
  }

  // The stuck state.

  /// A worker at a wait, or a stream at its head.
  struct Node {
    uint32_t worker;
    std::optional<uint64_t> key; ///< of a stream
  };
  /// Why a node does not go on: `post`, which it is at or waits for, needs
  /// `awaited`, and for that `node` would have to go on.
  struct Edge {
    uint32_t node;
    Site post, awaited;
  };

  bool isStuck(uint32_t w, uint64_t key) const {
    auto found = streams[w].find(key);
    return found != streams[w].end() &&
           found->second.head < found->second.queue.size();
  }

  /// By worker, its wait first.
  void findNodes() {
    waiting.assign(next.size(), kNone);
    for (uint32_t w = 0; w < next.size(); ++w) {
      if (isStuck(w)) {
        waiting[w] = static_cast<uint32_t>(nodes.size());
        nodes.push_back({w, std::nullopt});
      }
      if (streamed)
        for (const auto &[key, stream] : streams[w])
          if (isStuck(w, key)) {
            held[{w, key}] = static_cast<uint32_t>(nodes.size());
            nodes.push_back({w, key});
          }
    }
  }

  void findStarts() {
    starts.resize(arrived.size());
    for (uint32_t w = 0; w < next.size(); ++w)
      for (uint32_t i = 0; i < done[w].size(); ++i)
        if (isStart({w, i}))
          starts[mateOf({w, i})].push_back({w, i});
  }

  /// What a node is at or waits for.
  std::vector<Site> postsOf(const Node &node) const {
    if (node.key)
      return headOf(node.worker, *node.key);
    Site own{node.worker, awaitedBy(node.worker)};
    return streamed ? headOf(node.worker, keyOf(own)) : std::vector<Site>{own};
  }
  uint32_t awaitedBy(uint32_t w) const {
    return program.workers[w]->instructions[next[w]].target();
  }

  /// Ascending by node, one for each.
  std::vector<Edge> edgesOf(const Node &node) const {
    std::vector<Edge> edges;
    for (Site post : postsOf(node)) {
      std::vector<Site> partners;
      if (isStart(post))
        partners = starts[mateOf(post)];
      else
        partners = {{at(post).target(), mateOf(post)}};
      for (Site partner : partners) {
        if (isInEffect(partner))
          continue;
        if (!isReached(partner))
          edges.push_back({waiting[partner.worker], post, partner});
        if (!streamed)
          continue;
        auto ahead = held.find({partner.worker, keyOf(partner)});
        if (ahead != held.end())
          edges.push_back({ahead->second, post, partner});
      }
    }
    std::ranges::stable_sort(edges, {}, &Edge::node);
    auto same = std::ranges::unique(edges, {}, &Edge::node);
    edges.erase(same.begin(), same.end());
    return edges;
  }

  /// A node and the edge to the next one; the last leads to the first.
  struct Link {
    uint32_t node;
    Edge edge;
  };

  /// Each node has an edge, so there is a cycle.
  std::vector<Link> shortestCycle() const {
    std::vector<std::vector<Edge>> edges;
    for (const Node &node : nodes)
      edges.push_back(edgesOf(node));
    std::vector<Link> best;
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      std::vector<Link> cycle = cycleFrom(node, edges);
      if (!cycle.empty() && (best.empty() || cycle.size() < best.size()))
        best = std::move(cycle);
    }
    return best;
  }

  /// The shortest cycle through `first`, of these the smallest, or none.
  static std::vector<Link>
  cycleFrom(uint32_t first, const std::vector<std::vector<Edge>> &edges) {
    // Breadth-first. Edges ascend, so a node is found by the smallest of its
    // shortest paths.
    std::vector<Link> from(edges.size(), {kNone, {}});
    std::vector<uint32_t> found = {first};
    for (size_t k = 0; k < found.size(); ++k)
      for (const Edge &edge : edges[found[k]]) {
        if (from[edge.node].node != kNone)
          continue;
        from[edge.node] = {found[k], edge};
        if (edge.node != first) {
          found.push_back(edge.node);
          continue;
        }
        std::vector<Link> cycle;
        uint32_t node = first;
        do {
          cycle.push_back(from[node]);
          node = from[node].node;
        } while (node != first);
        std::ranges::reverse(cycle);
        return cycle;
      }
    return {};
  }

  void reportCycle() {
    findNodes();
    findStarts();
    std::vector<Link> cycle = shortestCycle();
    std::string message = "expected nothing that waits for itself under the " +
                          std::string(nameOf(program.message_model)) +
                          " model, got a cycle of " + text(cycle.size()) + ":";
    for (const Link &link : cycle)
      message += describe(nodes[link.node], link.edge);
    const Node &first = nodes[cycle.front().node];
    report.addAt(Rule::Deadlock, first.worker,
                 first.key ? cycle.front().edge.post.index : next[first.worker],
                 message);
  }

  std::string describe(const Node &node, const Edge &edge) const {
    auto name = [&](Site site) { return report.name(site.worker, site.index); };
    std::string lines = "\n    " + ranksOf(node.worker) + ": ";
    if (node.key) {
      lines += name(edge.post);
    } else {
      lines += name({node.worker, next[node.worker]});
      uint32_t own = awaitedBy(node.worker);
      if (edge.post.index != own)
        lines += "\n      for which " + name(edge.post) +
                 (isInEffect({node.worker, own})
                      ? " must complete, which is of its group and"
                      : " must complete, which is before it on its "
                        "communicator and");
    }
    lines += "\n      waits until " + name(edge.awaited);
    if (!nodes[edge.node].key)
      return lines + " is reached";
    const Stream &ahead = streams[edge.awaited.worker].at(keyOf(edge.awaited));
    return lines + " takes effect, behind instruction " +
           text(ahead.queue[ahead.head].begin) + " on its communicator";
  }

  /// "rank 1", or "ranks 1, 5, 9" where there are copies.
  std::string ranksOf(uint32_t w) const {
    uint32_t copies = program.data_parallel;
    std::string ranks = (copies > 1 ? "ranks " : "rank ") + text(w);
    for (uint32_t copy = 1; copy < copies; ++copy) {
      // Nobody reads more.
      if (copy > 2 && copy + 1 < copies) {
        ranks += ", ...";
        copy = copies - 1;
      }
      ranks += ", " + text(uint64_t(copy) * next.size() + w);
    }
    return ranks;
  }

  const ProgramT &program;
  const Facts &facts;
  Report &report;
  bool buffered;
  bool streamed;
  std::vector<uint32_t> next;             ///< by worker, where it stands
  std::vector<std::vector<bool>> done;    ///< by worker, then post or start
  std::vector<std::vector<Site>> arrived; ///< by all-reduce, those in effect
  std::vector<uint32_t> runnable;

  // Under a stream model.
  std::vector<std::vector<bool>> inEffect; ///< by worker, then post or start
  std::vector<std::map<uint64_t, Stream>> streams; ///< by worker, then key
  std::vector<uint32_t> sharedBy; ///< the first communicator of equal members
  std::vector<std::pair<uint32_t, uint64_t>> beginning; ///< new heads

  // Of the stuck state.
  std::vector<Node> nodes;
  std::vector<uint32_t> waiting; ///< by worker, its node at a wait
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> held; ///< nodes of streams
  std::vector<std::vector<Site>> starts;                  ///< by all-reduce
};

} // namespace

void verifyDeadlock(const ProgramT &program, const Facts &facts,
                    Report &report) {
  Machine(program, facts, report).run();
}

} // namespace chimera::program::verify
