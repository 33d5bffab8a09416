//===- Deadlock.cpp - Abstract execution of the streams -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check for deadlocks. It executes the instructions of each worker
// abstractly, as far as possible, one worker at a time. The order in which
// workers run does not matter: after the condition of a wait has become true,
// it never becomes false again. So either all workers end, or they get stuck in
// the same state in every order. In this state, the edges of a graph lead from
// each stuck worker to the workers that it waits for. The shortest cycle of
// this graph is reported.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"
#include "runtime/proof/ShortestCycle.h"

#include <algorithm>
#include <map>

namespace chimera::program::verify {

namespace {

/// The maximum number of links of a cycle that a message shows.
constexpr size_t kMaxLinks = 20;

/// A list of operations of a worker that take effect one after another.
/// Depending on the message model, a worker has one stream for each
/// communicator, or one stream for all its operations.
struct Stream {
  /// The posts of one operation: a range in posted[worker]. A group has several
  /// posts.
  struct Operation {
    uint32_t begin, end;
  };
  std::vector<Operation> queue; ///< in the order in which they were posted
  size_t head = 0;              ///< index of the operation in effect, if any
  uint32_t open = 0;            ///< posts of `head` that wait for a partner
};

class AbstractExecution {
public:
  AbstractExecution(const ProgramT &program, const Facts &facts, Report &report)
      : program(program), facts(facts), report(report),
        buffered(program.message_model == MessageModel::Buffered),
        streamed(hasStreams(program.message_model)),
        next(program.workers.size()), done(program.workers.size()),
        arrived(facts.communicatorOf.size()) {
    for (size_t w = 0; w < done.size(); ++w)
      done[w].resize(program.workers[w]->instructions.size());
    if (!streamed)
      return;
    inEffect = done;
    streams.resize(next.size());
    posted.resize(next.size());
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
  const Instruction &at(InstructionRef ref) const {
    return program.workers[ref.worker]->instructions[ref.index];
  }
  uint32_t matchOf(InstructionRef ref) const {
    return facts.match[ref.worker][ref.index];
  }
  bool isStart(InstructionRef ref) const {
    return at(ref).opcode() == Opcode::AllReduceStart;
  }
  bool isStuck(uint32_t w) const { return next[w] < done[w].size(); }
  bool isReached(InstructionRef ref) const {
    return ref.index < next[ref.worker];
  }
  bool isInEffect(InstructionRef ref) const {
    return streamed ? inEffect[ref.worker][ref.index] : isReached(ref);
  }

  /// The key, in streams[ref.worker], of the stream to which a post or start
  /// belongs.
  uint64_t keyOf(InstructionRef ref) const {
    if (program.message_model == MessageModel::StreamPerDevice)
      return 0;
    uint64_t target = at(ref).target();
    if (isStart(ref))
      return uint64_t(1) << 40 | sharedBy[target];
    bool isOwn = program.message_model == MessageModel::StreamPerDirection &&
                 at(ref).opcode() == Opcode::PostSend;
    return target << 1 | isOwn;
  }

  void advance(uint32_t w) {
    const std::vector<Instruction> &stream = program.workers[w]->instructions;
    // isReached uses `next`, also while this worker is running. So use `next`
    // as the loop variable.
    for (uint32_t &i = next[w]; i < stream.size(); ++i)
      switch (stream[i].opcode()) {
      case Opcode::PostSend:
      case Opcode::PostRecv:
      case Opcode::AllReduceStart:
        if (streamed)
          enqueue(w, i, i + 1);
        else
          takeEffect({w, i});
        break;
      case Opcode::Group:
        if (streamed) {
          enqueue(w, i + 1, i + 1 + stream[i].target());
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

  /// Adds the posts in [begin, end) to their streams. All of these posts that
  /// are in the same stream form one operation.
  void enqueue(uint32_t w, uint32_t begin, uint32_t end) {
    std::vector<uint32_t> &posts = posted[w];
    auto first = static_cast<uint32_t>(posts.size());
    for (uint32_t i = begin; i < end; ++i)
      posts.push_back(i);
    auto keyAt = [&](uint32_t i) { return keyOf({w, i}); };
    std::ranges::stable_sort(posts.begin() + first, posts.end(), {}, keyAt);
    while (first < posts.size()) {
      uint64_t key = keyAt(posts[first]);
      auto last = first + 1;
      while (last < posts.size() && keyAt(posts[last]) == key)
        ++last;
      Stream &stream = streams[w][key];
      stream.queue.push_back({first, last});
      if (stream.head + 1 == stream.queue.size())
        beginning.emplace_back(w, key);
      first = last;
    }
  }

  /// The posts and starts of the operation at the head of a stream.
  std::vector<InstructionRef> headOf(uint32_t w, uint64_t key) const {
    const Stream &stream = streams[w].at(key);
    Stream::Operation head = stream.queue[stream.head];
    std::vector<InstructionRef> posts;
    for (uint32_t k = head.begin; k < head.end; ++k)
      posts.push_back({w, posted[w][k]});
    return posts;
  }

  void begin(uint32_t w, uint64_t key) {
    std::vector<InstructionRef> posts = headOf(w, key);
    streams[w][key].open = static_cast<uint32_t>(posts.size());
    for (InstructionRef post : posts) {
      inEffect[post.worker][post.index] = true;
      takeEffect(post);
    }
  }

  void takeEffect(InstructionRef ref) {
    if (isStart(ref)) {
      std::vector<InstructionRef> &starts = arrived[matchOf(ref)];
      starts.push_back(ref);
      if (starts.size() == facts.members[at(ref).target()].size())
        for (InstructionRef each : starts)
          partnersInEffect(each);
      return;
    }
    InstructionRef peer{at(ref).target(), matchOf(ref)};
    bool both = isInEffect(peer);
    if (both || (buffered && at(ref).opcode() == Opcode::PostSend))
      partnersInEffect(ref);
    if (both)
      partnersInEffect(peer);
  }

  /// Called when all partners of a post or start are in effect. Under a stream
  /// model, completes an operation when this is true for all its posts, and
  /// begins the next operation of the stream.
  void partnersInEffect(InstructionRef ref) {
    if (!streamed)
      return complete(ref);
    uint64_t key = keyOf(ref);
    Stream &stream = streams[ref.worker][key];
    if (--stream.open > 0)
      return;
    for (InstructionRef post : headOf(ref.worker, key))
      complete(post);
    if (++stream.head < stream.queue.size())
      beginning.emplace_back(ref.worker, key);
  }

  /// Completes a post or start. If its worker waits for it, the worker can run.
  void complete(InstructionRef ref) {
    auto [w, i] = ref;
    if (done[w][i])
      return;
    done[w][i] = true;
    // If the worker is at the wait for this post, it can run. If the worker is
    // running now, `next` is at a post and not at a wait.
    if (next[w] == facts.waitOf[w][i])
      runnable.push_back(w);
  }

  // The following functions examine the final state, in which all workers have
  // ended or are stuck.

  /// A node of the graph: a worker that is stuck at a wait, or a stream that is
  /// stuck at its first unfinished operation.
  struct Node {
    uint32_t worker;
    std::optional<uint64_t> key; ///< set if the node is a stream
  };
  /// A reason why a node is stuck. The node is at `post` or waits for it.
  /// `post` is not complete, because `awaited` has not taken effect. `awaited`
  /// can take effect only after the node `node` advances.
  struct Edge {
    uint32_t node;
    InstructionRef post, awaited;
  };

  bool isStuck(uint32_t w, uint64_t key) const {
    auto found = streams[w].find(key);
    return found != streams[w].end() &&
           found->second.head < found->second.queue.size();
  }

  /// Finds the nodes, in the order of workers. The node of a worker's wait
  /// comes before the nodes of its streams.
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
          starts[matchOf({w, i})].push_back({w, i});
  }

  /// The instructions at which a node is stuck, or for which it waits: the
  /// posts of an operation, or the start of an all-reduce.
  std::vector<InstructionRef> postsOf(const Node &node) const {
    if (node.key)
      return headOf(node.worker, *node.key);
    InstructionRef own{node.worker, awaitedBy(node.worker)};
    return streamed ? headOf(node.worker, keyOf(own))
                    : std::vector<InstructionRef>{own};
  }
  uint32_t awaitedBy(uint32_t w) const {
    return program.workers[w]->instructions[next[w]].target();
  }

  /// The edges of a node that is stuck at `posts` (postsOf). At most one edge
  /// leads to each node. The edges are in ascending order of these nodes.
  std::vector<Edge> edgesOf(const std::vector<InstructionRef> &posts) const {
    std::vector<Edge> edges;
    for (InstructionRef post : posts) {
      std::vector<InstructionRef> partners;
      if (isStart(post))
        partners = starts[matchOf(post)];
      else
        partners = {{at(post).target(), matchOf(post)}};
      for (InstructionRef partner : partners) {
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

  /// The graph of the final state. Each node has an edge. All stuck members of
  /// an all-reduce wait for the same other members, so they share one list of
  /// edges.
  Graph graphOfNodes() const {
    Graph graph;
    std::vector<uint32_t> listOfStart(starts.size(), kNone);
    for (const Node &node : nodes) {
      std::vector<InstructionRef> posts = postsOf(node);
      uint32_t *shared =
          isStart(posts[0]) ? &listOfStart[matchOf(posts[0])] : nullptr;
      if (!shared || *shared == kNone) {
        std::vector<uint32_t> &list = graph.lists.emplace_back();
        for (const Edge &edge : edgesOf(posts))
          list.push_back(edge.node);
        if (shared)
          *shared = static_cast<uint32_t>(graph.lists.size() - 1);
      }
      graph.listOf.push_back(
          shared ? *shared : static_cast<uint32_t>(graph.lists.size() - 1));
    }
    return graph;
  }

  void reportCycle() {
    findNodes();
    findStarts();
    std::vector<uint32_t> cycle = shortestCycle(graphOfNodes());
    std::string message = "expected no deadlock under the " +
                          std::string(nameOf(program.message_model)) +
                          " model, got a cycle of " + text(cycle.size()) + ":";
    InstructionRef first{};
    for (size_t k = 0; k < cycle.size(); ++k) {
      // Show at most kMaxLinks links, because more links do not help a user.
      if (k == kMaxLinks) {
        message += "\n    and " + text(cycle.size() - k) + " more";
        break;
      }
      const Node &node = nodes[cycle[k]];
      uint32_t next = cycle[(k + 1) % cycle.size()];
      std::vector<Edge> edges = edgesOf(postsOf(node));
      Edge edge = *std::ranges::lower_bound(edges, next, {}, &Edge::node);
      message += describe(node, edge);
      if (k == 0)
        first = node.key ? edge.post
                         : InstructionRef{node.worker, this->next[node.worker]};
    }
    report.addAt(Rule::Deadlock, first.worker, first.index, message);
  }

  std::string describe(const Node &node, const Edge &edge) const {
    auto name = [&](InstructionRef ref) {
      return report.name(ref.worker, ref.index);
    };
    const std::string stream =
        program.message_model == MessageModel::StreamPerDevice ? "device"
                                                               : "communicator";
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
                      : " must complete, which is before it on its " + stream +
                            " and");
    }
    lines += "\n      waits until " + name(edge.awaited);
    if (!nodes[edge.node].key)
      return lines + " is reached";
    const Stream &ahead = streams[edge.awaited.worker].at(keyOf(edge.awaited));
    uint32_t head = ahead.queue[ahead.head].begin;
    return lines + " takes effect, after instruction " +
           text(posted[edge.awaited.worker][head]) + " on its " + stream;
  }

  /// The ranks of a worker: "rank 1", or "ranks 1, 5, 9" if there are
  /// data-parallel copies.
  std::string ranksOf(uint32_t w) const {
    uint32_t copies = program.data_parallel;
    std::string ranks = (copies > 1 ? "ranks " : "rank ") + text(w);
    for (uint32_t copy = 1; copy < copies; ++copy) {
      // Show only the first three ranks and the last rank, because more ranks
      // do not help a user.
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
  std::vector<uint32_t> next; ///< by worker: the index of the next instruction
  std::vector<std::vector<bool>> done; ///< by worker, then by instruction
  /// For each all-reduce, its starts that are in effect.
  std::vector<std::vector<InstructionRef>> arrived;
  std::vector<uint32_t> runnable;

  // Used only under a stream model.
  std::vector<std::vector<bool>> inEffect; ///< by worker, then by instruction
  std::vector<std::map<uint64_t, Stream>> streams; ///< by worker, then by key
  /// For each worker, its posts and starts. The posts of one operation are
  /// adjacent.
  std::vector<std::vector<uint32_t>> posted;
  /// For each communicator, the first communicator with the same members.
  std::vector<uint32_t> sharedBy;
  /// The streams whose next operation can begin, by worker and key.
  std::vector<std::pair<uint32_t, uint64_t>> beginning;

  // Used only by the functions that examine the final state.
  std::vector<Node> nodes;
  std::vector<uint32_t> waiting; ///< by worker: the node of its wait
  /// The node of each stuck stream, by worker and key.
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> held;
  std::vector<std::vector<InstructionRef>> starts; ///< all, by all-reduce
};

} // namespace

void verifyDeadlock(const ProgramT &program, const Facts &facts,
                    Report &report) {
  AbstractExecution(program, facts, report).run();
}

} // namespace chimera::program::verify
