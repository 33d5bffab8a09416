//===- Orderings.cpp - Runs without one wait or event ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Orderings.h"

#include "runtime/interpreter/SimulatedRanks.h"
#include "runtime/model/ExactStage.h"
#include "runtime/program/BackwardPieces.h"
#include "runtime/watch/StatusPage.h"
#include "test/runtime/hostile/Pick.h"
#include "test/runtime/hostile/Run.h"

#include <algorithm>
#include <numeric>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;
using program::Instruction;
using program::MessageModel;
using program::Opcode;
using simulated::Ordering;

namespace {
/// One ordering, which a run leaves out in every step.
struct LeftOut {
  uint32_t rank;
  uint32_t instruction;
  Ordering ordering;
  bool operator==(const LeftOut &) const = default;
};

/// A graph of the orderings in a run of a program. Its nodes are the operations
/// that queues execute, and the beginnings and ends of messages and
/// all-reduces, of all ranks and steps. A path from one node to another means
/// that the first one happens before.
class UseGraph {
public:
  explicit UseGraph(const program::ProgramT &program)
      : program(program), pieces(program) {
    for (uint32_t rank = 0; rank < program::rankCount(program); ++rank)
      addRank(rank);
    for (auto &[channel, sends] : sent) {
      const std::vector<uint32_t> &receives = received[channel];
      for (size_t k = 0; k < sends.size(); ++k)
        edge(sends[k], receives.at(k) + 1);
    }
    for (auto &[member, starts] : started)
      for (auto &[other, others] : started)
        if (member.first == other.first && member.second != other.second)
          for (size_t k = 0; k < starts.size(); ++k)
            edge(starts[k], others.at(k) + 1);
  }

  /// The first two conflicting uses of memory that no path connects, as text.
  /// If `leftOut` is given, ignores the edges that this ordering makes. Empty
  /// if paths connect all conflicting uses.
  std::string unordered(const LeftOut *leftOut) const {
    for (const Use &use : uses) {
      std::vector<bool> reached = reachedFrom(use.last, leftOut);
      for (const Use &other : uses)
        if (&use != &other && use.rank == other.rank &&
            (use.writes || other.writes) && use.begin < other.end &&
            other.begin < use.end && use.first != other.first &&
            use.position < other.position && !reached[other.first])
          return "rank " + std::to_string(use.rank) + " instructions " +
                 std::to_string(use.index) + " and " +
                 std::to_string(other.index) + ", run as number " +
                 std::to_string(use.position) + " and " +
                 std::to_string(other.position);
    }
    return {};
  }

private:
  struct Edge {
    uint32_t to;
    /// The ordering that makes the edge, if one does.
    std::optional<LeftOut> made;
  };
  /// A use of bytes: by the node `first`, or by an operation that begins at
  /// `first` and ends at `last`.
  struct Use {
    uint32_t rank, first, last;
    uint64_t begin, end;
    bool writes;
    size_t position; ///< in the order in which the rank runs
    uint32_t index;  ///< of the instruction
  };

  uint32_t node() {
    edges.emplace_back();
    return static_cast<uint32_t>(edges.size() - 1);
  }
  void edge(uint32_t from, uint32_t to, std::optional<LeftOut> made = {}) {
    edges[from].push_back({to, made});
  }

  void addRank(uint32_t rank) {
    auto workers = static_cast<uint32_t>(program.workers.size());
    const program::WorkerT &worker = *program.workers[rank % workers];
    std::vector<uint32_t> order = instructionsRun(worker);
    std::vector<uint32_t> places(worker.buffers.size());
    std::iota(places.begin(), places.end(), 0);
    std::vector<uint32_t> began(worker.instructions.size()); // node, by post
    std::vector<std::vector<Use>> operation(worker.instructions.size());
    std::vector<Use> ofQueue; // uses by the queue, in order
    std::map<std::vector<uint32_t>, std::vector<uint32_t>> streamEnds;
    uint32_t queue = node(); // initializes the weights
    uint32_t groupLeft = 0;
    std::map<std::vector<uint32_t>, std::vector<uint32_t>> groupEnds;
    std::vector<uint32_t> groupBegins;

    auto useOf = [&](uint32_t buffer, uint32_t first, uint32_t last,
                     bool writes, size_t position) {
      const program::Buffer &place = worker.buffers[places[buffer]];
      bool isStash = program::isStash(place.kind());
      return Use{rank,
                 first,
                 last,
                 place.offset(),
                 isStash ? place.offset() : place.offset() + place.bytes(),
                 writes,
                 position,
                 position ? order[position - 1] : 0};
    };
    auto usesOf = [&](const Instruction &instruction, uint32_t first,
                      uint32_t last, size_t position) {
      std::vector<Use> found;
      for (uint32_t buffer : program::operandsOf(worker, instruction))
        found.push_back(useOf(
            buffer, first, last,
            addsToLoss(instruction.opcode(), worker.buffers[buffer].kind()),
            position));
      for (uint32_t buffer : program::resultsOf(worker, instruction))
        found.push_back(useOf(buffer, first, last, true, position));
      return found;
    };
    for (const program::State &state : worker.states)
      for (uint32_t buffer : {state.weights(), state.optimizer_state()})
        ofQueue.push_back(useOf(buffer, queue, queue, true, 0));

    for (size_t position = 1; position <= order.size(); ++position) {
      uint32_t index = order[position - 1];
      const Instruction &instruction = worker.instructions[index];
      switch (instruction.opcode()) {
      case Opcode::Split:
      case Opcode::Join:
        continue;
      case Opcode::Group:
        groupLeft = instruction.target();
        groupBegins.clear();
        groupEnds.clear();
        continue;
      case Opcode::Rename: {
        std::vector<uint32_t> from;
        for (uint32_t buffer : program::operandsOf(worker, instruction))
          from.push_back(places[buffer]);
        size_t i = 0;
        for (uint32_t buffer : program::resultsOf(worker, instruction))
          places[buffer] = from[i++];
        continue;
      }
      default:
        break;
      }
      if (!isPost(instruction)) {
        uint32_t next = node();
        edge(queue, next);
        queue = next;
        std::vector<Use> own;
        if (instruction.opcode() == Opcode::Wait) {
          edge(began[instruction.target()] + 1, queue,
               LeftOut{rank, index, Ordering::Wait});
          // After the wait, the queue orders the uses of the awaited operation
          // with its own later uses.
          for (Use use : operation[instruction.target()]) {
            use.first = use.last = queue;
            ofQueue.push_back(use);
          }
          readLoss(worker.instructions[instruction.target()],
                   operation[instruction.target()], queue, position);
          continue;
        }
        own = usesOf(instruction, queue, queue, position);
        ofQueue.insert(ofQueue.end(), own.begin(), own.end());
        if (instruction.opcode() == Opcode::Recompute)
          cutToPiece(instruction, own);
        uses.insert(uses.end(), own.begin(), own.end());
        continue;
      }
      uint32_t begin = node(), end = node();
      edge(begin, end);
      began[index] = begin;
      operation[index] = usesOf(instruction, begin, end, position);
      LeftOut after{rank, index, Ordering::After};
      for (const Use &use : operation[index]) {
        uses.push_back(use);
        // The queue executes its operations in order. So it suffices to wait
        // for the last conflicting use.
        for (auto other = ofQueue.rbegin(); other != ofQueue.rend(); ++other)
          if ((use.writes || other->writes) && use.begin < other->end &&
              other->begin < use.end) {
            edge(other->last, begin, after);
            break;
          }
      }
      record(instruction, rank, begin);
      std::optional<std::vector<uint32_t>> stream = streamOf(instruction, rank);
      if (!stream)
        continue;
      for (uint32_t before : streamEnds[*stream])
        edge(before, begin);
      if (groupLeft == 0) {
        streamEnds[*stream] = {end};
        continue;
      }
      groupBegins.push_back(begin);
      groupEnds[*stream].push_back(end);
      if (--groupLeft == 0)
        closeGroup(streamEnds, groupEnds, groupBegins);
    }
  }

  /// A recompute reads only the bytes of its micro-batch or part, although the
  /// interpreter orders the whole values of the forward. Cuts `own` to these
  /// bytes.
  void cutToPiece(const Instruction &recompute, std::vector<Use> &own) const {
    program::Range range = pieces.forwardOf(recompute.micro_batch());
    uint64_t cuts = uint64_t(range.count) * recompute.parts();
    uint64_t cut = uint64_t(pieces.microBatchInStep(recompute.micro_batch()) -
                            range.first) *
                       recompute.parts() +
                   recompute.part();
    for (size_t i = 0; i < recompute.operands(); ++i)
      if (i != 1) { // the weights
        uint64_t size = (own[i].end - own[i].begin) / cuts;
        own[i].begin += cut * size;
        own[i].end = own[i].begin + size;
      }
  }

  /// After a wait for the sum of the losses, the queue copies the sum to the
  /// host. Adds this use.
  void readLoss(const Instruction &waited, const std::vector<Use> &used,
                uint32_t queue, size_t position) {
    if (waited.opcode() != Opcode::AllReduceStart ||
        waited.kind() != program::ValueKind::Loss)
      return;
    Use use = used.back(); // the result
    use.first = use.last = queue;
    use.writes = false;
    use.position = position;
    ++use.index; // usually the index of the wait
    uses.push_back(use);
  }

  /// A group of posts is one operation on each of its streams: each post of the
  /// group begins only after all nodes after which any of its posts begins.
  void closeGroup(
      std::map<std::vector<uint32_t>, std::vector<uint32_t>> &ends,
      const std::map<std::vector<uint32_t>, std::vector<uint32_t>> &groupEnds,
      const std::vector<uint32_t> &begins) {
    std::vector<uint32_t> all;
    for (const auto &[stream, own] : groupEnds)
      all.insert(all.end(), own.begin(), own.end());
    for (const auto &[stream, own] : groupEnds)
      ends[stream] = all;
    std::vector<std::pair<uint32_t, Edge>> shared;
    for (uint32_t from = 0; from < edges.size(); ++from)
      for (const Edge &known : edges[from])
        if (std::ranges::count(begins, known.to))
          for (uint32_t begin : begins)
            if (begin != known.to)
              shared.push_back({from, {begin, known.made}});
    for (const auto &[from, known] : shared)
      edges[from].push_back(known);
  }

  std::vector<uint32_t> instructionsRun(const program::WorkerT &worker) const {
    std::vector<uint32_t> order;
    auto append = [&](uint32_t begin, size_t end) {
      for (uint32_t i = begin; i < end; ++i)
        order.push_back(i);
    };
    bool flushes = program.updates == program::Updates::Flush;
    append(0, worker.body_begin);
    for (uint64_t step = 0; step < kRunSteps - (flushes ? 0 : 1); ++step)
      append(worker.body_begin, worker.body_end);
    if (!flushes)
      append(worker.body_end, worker.instructions.size());
    return order;
  }

  uint32_t rankOf(uint32_t rank, uint32_t worker) const {
    auto workers = static_cast<uint32_t>(program.workers.size());
    return rank / workers * workers + worker;
  }

  void record(const Instruction &instruction, uint32_t rank, uint32_t begin) {
    if (instruction.opcode() == Opcode::AllReduceStart) {
      started[{instruction.target(), rank}].push_back(begin);
      return;
    }
    uint32_t peer = rankOf(rank, instruction.target());
    if (instruction.opcode() == Opcode::PostSend)
      sent[{rank, peer}].push_back(begin);
    else
      received[{peer, rank}].push_back(begin);
  }

  std::optional<std::vector<uint32_t>> streamOf(const Instruction &instruction,
                                                uint32_t rank) const {
    if (!program::hasStreams(program.message_model))
      return std::nullopt;
    if (program.message_model == MessageModel::StreamPerDevice)
      return std::vector<uint32_t>{};
    if (instruction.opcode() == Opcode::AllReduceStart) {
      std::vector<uint32_t> stream{0};
      for (const program::Contribution &summand :
           program.communicators[instruction.target()]->contributions)
        stream.push_back(summand.worker());
      std::sort(stream.begin() + 1, stream.end());
      stream.erase(std::unique(stream.begin() + 1, stream.end()), stream.end());
      return stream;
    }
    std::vector<uint32_t> stream{1, rankOf(rank, instruction.target())};
    if (program.message_model == MessageModel::StreamPerDirection)
      stream.push_back(instruction.opcode() == Opcode::PostSend);
    return stream;
  }

  std::vector<bool> reachedFrom(uint32_t from, const LeftOut *leftOut) const {
    std::vector<bool> reached(edges.size());
    std::vector<uint32_t> open{from};
    while (!open.empty()) {
      uint32_t at = open.back();
      open.pop_back();
      for (const Edge &next : edges[at])
        if (!reached[next.to] &&
            (!leftOut || !next.made || !(*next.made == *leftOut))) {
          reached[next.to] = true;
          open.push_back(next.to);
        }
    }
    return reached;
  }

  const program::ProgramT &program;
  const program::BackwardPieces pieces;
  std::vector<std::vector<Edge>> edges; // by node
  std::vector<Use> uses;
  // The beginnings of operations: by sender and receiver, or by communicator
  // and member.
  using Key = std::pair<uint32_t, uint32_t>;
  std::map<Key, std::vector<uint32_t>> sent, received, started;
};

std::string failureWithout(const program::ProgramT &program,
                           const LeftOut *leftOut) {
  SyntheticData data(program.seed);
  StatusPage page(program::rankCount(program));
  SimulatedRanks ranks(
      program, makeExactStage, data,
      {.statusOf = [&](uint32_t rank) -> Status & { return page.of(rank); },
       .ignores =
           [leftOut](const simulated::Label &label, Ordering ordering) {
             return leftOut && *leftOut == LeftOut{label.rank,
                                                   label.instruction, ordering};
           }});
  try {
    ranks.run(kRunSteps, [](uint32_t, uint64_t, std::optional<Loss>) {});
  } catch (const std::exception &error) {
    return error.what();
  }
  return {};
}
} // namespace

std::string hostile::checkOrderings(const program::ProgramT &program,
                                    OrderingCounts &counts) {
  const UseGraph graph(program);
  auto workers = static_cast<uint32_t>(program.workers.size());
  auto differs = [&](const LeftOut *leftOut) -> std::string {
    std::string failure = failureWithout(program, leftOut);
    bool isReported = failure.find("no event orders") != std::string::npos;
    std::string unordered = graph.unordered(leftOut);
    bool isOrdered = unordered.empty();
    if (leftOut)
      counts.needed += !isOrdered;
    if (isReported != isOrdered)
      return {};
    return (isOrdered
                ? "all uses are ordered, but " + failure
                : unordered + " are not ordered, but nothing is reported") +
           (leftOut ? " without " +
                          std::string(leftOut->ordering == Ordering::After
                                          ? "the event of"
                                          : "") +
                          " rank " + std::to_string(leftOut->rank) +
                          " instruction " +
                          std::to_string(leftOut->instruction) + " (" +
                          program::describe(program, leftOut->rank % workers,
                                            leftOut->instruction) +
                          ")"
                    : "");
  };
  if (std::string found = differs(nullptr); !found.empty())
    return found;
  // The ranks of other data-parallel copies run the same instructions.
  for (uint32_t rank = 0; rank < workers; ++rank) {
    const auto &instructions = program.workers[rank]->instructions;
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const bool posts = isPost(instructions[i]);
      if (!posts && instructions[i].opcode() != Opcode::Wait)
        continue;
      ++counts.orderings;
      LeftOut leftOut{rank, i, posts ? Ordering::After : Ordering::Wait};
      if (std::string found = differs(&leftOut); !found.empty())
        return found;
    }
  }
  return {};
}
