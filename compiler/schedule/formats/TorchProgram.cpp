//===- TorchProgram.cpp - Checks of PyTorch programs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchProgram.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace chimera::schedule::torch {
namespace {

bool isSend(Kind kind) {
  return kind == Kind::SendForward || kind == Kind::SendBackward;
}
bool isReceive(Kind kind) {
  return kind == Kind::ReceiveForward || kind == Kind::ReceiveBackward;
}
bool isWaitForSend(Kind kind) {
  return kind == Kind::WaitSendForward || kind == Kind::WaitSendBackward;
}
bool computes(Kind kind) { return kind <= Kind::WeightGradient; }
/// Whether an action begins the backward of its stage, with the gradient of the
/// stage's output.
bool beginsBackward(Kind kind) {
  return kind == Kind::Backward || kind == Kind::InputGradient;
}
bool addsToGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::WeightGradient;
}

/// The stage at the other end of a message.
int32_t otherStage(const Action &action) {
  const bool isLater =
      action.kind == Kind::SendForward || action.kind == Kind::ReceiveBackward;
  return action.stage + (isLater ? 1 : -1);
}
/// The receive of a send, and the reverse.
Action otherEnd(const Action &action) {
  const Kind kind = action.kind == Kind::SendForward    ? Kind::ReceiveForward
                    : action.kind == Kind::SendBackward ? Kind::ReceiveBackward
                    : action.kind == Kind::ReceiveForward ? Kind::SendForward
                                                          : Kind::SendBackward;
  return {kind, otherStage(action), action.microBatch};
}

std::string cellOf(const Place &place, uint32_t number) {
  return "cell " + std::to_string(number) + " of rank " +
         std::to_string(place.rank);
}

class Checker {
public:
  explicit Checker(const File &file) : file(file) {}

  Checked run() {
    place();
    for (int32_t rank = 0; rank < ranks(); ++rank)
      checkRank(rank);
    checkCompleteness();
    checkTensors();
    std::ranges::stable_sort(result.faults, {}, [](const Fault &fault) {
      return std::pair(fault.place.rank, fault.place.cell);
    });
    return std::move(result);
  }

private:
  using Name = std::tuple<Kind, int32_t, int32_t>; ///< of an action
  static Name keyOf(const Action &action) {
    return {action.kind, action.stage, action.microBatch};
  }

  int32_t ranks() const { return static_cast<int32_t>(file.ranks.size()); }
  bool isLast(int32_t stage) const { return stage + 1 == result.stages; }
  uint32_t numberOf(const Place &place) const {
    return file.ranks[place.rank][place.cell].number;
  }
  void fail(const Place &place, const std::string &message) {
    result.faults.push_back({place, message});
  }

  template <typename Visit> void forEach(const Visit &visit) const {
    for (int32_t rank = 0; rank < ranks(); ++rank)
      for (uint32_t cell = 0; cell < file.ranks[rank].size(); ++cell)
        for (const Action &action : file.ranks[rank][cell].actions)
          visit(Place{rank, cell}, action);
  }

  /// Finds the rank of each stage: that of its first action.
  void place() {
    std::map<int32_t, Place> first;
    forEach([&](const Place &place, const Action &action) {
      auto [found, isNew] = first.try_emplace(action.stage, place);
      if (!isNew && found->second.rank != place.rank &&
          severalRanks.insert(action.stage).second)
        fail(place, "expected stage " + std::to_string(action.stage) +
                        " on one rank, got it in " +
                        cellOf(found->second, numberOf(found->second)) +
                        " too");
      result.stages = std::max(result.stages, action.stage + 1);
      result.microBatches =
          std::max(result.microBatches, action.microBatch + 1);
      result.waitsForSends |= isWaitForSend(action.kind);
    });
    for (int32_t stage = 0; stage < result.stages; ++stage) {
      const auto found = first.find(stage);
      result.rankOfStage.push_back(found == first.end() ? -1
                                                        : found->second.rank);
      if (found == first.end())
        fail({0, 0}, "expected actions of stage " + std::to_string(stage) +
                         " on some rank, got none");
    }
    result.mostSends.resize(file.ranks.size());
  }

  /// Whether a neighbour of a stage is on the same rank, so that values pass
  /// between them without a message.
  bool areTogether(int32_t stage, int32_t other) const {
    return other >= 0 && other < result.stages &&
           result.rankOfStage[stage] == result.rankOfStage[other];
  }

  /// Checks that each action has what it needs before it in its row.
  void checkRank(int32_t rank) {
    std::map<Name, uint32_t> done; // cell
    std::set<int32_t> whole;       // stages whose weights are gathered, or
                                   // whose UNSHARD is reported as missing
    int32_t sends = 0;
    int32_t sums = -1; // stage whose sum nobody has waited for, or -1
    for (uint32_t cell = 0; cell < file.ranks[rank].size(); ++cell) {
      const Place here{rank, cell};
      for (const Action &action : file.ranks[rank][cell].actions) {
        auto needs = [&](Kind kind, int32_t stage) {
          if (const Action needed{kind, stage, action.microBatch};
              !done.contains(keyOf(needed)))
            fail(here, "expected " + nameOf(needed) + " before " +
                           nameOf(action) + ", got none");
        };
        auto needsOneOf = [&](Kind one, Kind other, int32_t stage) {
          if (!done.contains({other, stage, action.microBatch}))
            needs(one, stage);
        };
        const int32_t stage = action.stage;
        const bool isMessage = isSend(action.kind) || isReceive(action.kind);
        if (isMessage && checkEnds(here, action))
          continue;
        switch (action.kind) {
        case Kind::Forward:
          if (areTogether(stage, stage - 1))
            needs(Kind::Forward, stage - 1);
          else if (stage > 0)
            needs(Kind::ReceiveForward, stage);
          break;
        case Kind::Backward:
        case Kind::InputGradient:
          needs(Kind::Forward, stage);
          if (areTogether(stage, stage + 1))
            needsOneOf(Kind::Backward, Kind::InputGradient, stage + 1);
          else if (!isLast(stage))
            needs(Kind::ReceiveBackward, stage);
          break;
        case Kind::WeightGradient:
          needs(Kind::InputGradient, stage);
          break;
        case Kind::SendForward:
          needs(Kind::Forward, stage);
          ++sends;
          break;
        case Kind::SendBackward:
          needsOneOf(Kind::Backward, Kind::InputGradient, stage);
          ++sends;
          break;
        case Kind::WaitSendForward:
          needs(Kind::SendForward, stage);
          --sends;
          break;
        case Kind::WaitSendBackward:
          needs(Kind::SendBackward, stage);
          --sends;
          break;
        case Kind::Unshard:
          whole.insert(stage);
          break;
        case Kind::Reshard:
          whole.erase(stage);
          break;
        case Kind::ReduceGradient:
          if (result.waitsForSends && sums >= 0)
            fail(here, "expected " + nameOf({Kind::WaitReduceGradient, sums}) +
                           " before " + nameOf(action) + ", got none");
          sums = stage;
          break;
        case Kind::WaitReduceGradient:
          needs(Kind::ReduceGradient, stage);
          sums = -1;
          break;
        case Kind::ReceiveForward:
        case Kind::ReceiveBackward:
          break;
        }
        if (computes(action.kind) && whole.insert(stage).second)
          fail(here, "expected " + nameOf({Kind::Unshard, stage}) + " before " +
                         nameOf(action) + ", got none");
        if (addsToGradient(action.kind) &&
            done.contains({Kind::ReduceGradient, stage, -1}))
          fail(here, "expected " + nameOf(action) + " before " +
                         nameOf({Kind::ReduceGradient, stage}) +
                         ", got it after");
        result.mostSends[rank] = std::max(result.mostSends[rank], sends);
        note(here, action, done);
      }
    }
  }

  /// Notes that an action has been done. UNSHARD and RESHARD may be repeated.
  void note(const Place &here, const Action &action,
            std::map<Name, uint32_t> &done) {
    auto [found, isNew] = done.try_emplace(keyOf(action), here.cell);
    if (!isNew && action.kind != Kind::Unshard && action.kind != Kind::Reshard)
      fail(here, "expected " + nameOf(action) + " once, got it in " +
                     cellOf(here, numberOf({here.rank, found->second})) +
                     " too");
    all.insert(keyOf(action));
  }

  /// Fails, and returns true, if the message `action` has no other end.
  bool checkEnds(const Place &here, const Action &action) {
    const int32_t other = otherStage(action);
    const std::string end = "expected " + nameOf(action) + " only if stage " +
                            std::to_string(other);
    if (other < 0 || other >= result.stages)
      fail(here, end + " exists, got no such stage");
    else if (areTogether(action.stage, other))
      fail(here, end + " is on another rank, got it on the same");
    else
      return false;
    return true;
  }

  /// Checks that each stage has its actions for each micro-batch, and that
  /// nothing is missing after an action.
  void checkCompleteness() {
    const auto has = [&](Kind kind, int32_t stage, int32_t microBatch = -1) {
      return all.contains({kind, stage, microBatch});
    };
    forEach([&](const Place &place, const Action &action) {
      const auto wants = [&](Kind kind) {
        const Action wanted{kind, action.stage, action.microBatch};
        if (!all.contains(keyOf(wanted)))
          fail(place, "expected " + nameOf(wanted) + " after " +
                          nameOf(action) + ", got none");
      };
      const int32_t stage = action.stage;
      if (action.kind == Kind::Forward) {
        if (!isLast(stage) && !areTogether(stage, stage + 1))
          wants(Kind::SendForward);
        if (!has(Kind::InputGradient, stage, action.microBatch))
          wants(Kind::Backward);
      } else if (beginsBackward(action.kind)) {
        if (stage > 0 && !areTogether(stage, stage - 1))
          wants(Kind::SendBackward);
        if (action.kind == Kind::InputGradient)
          wants(Kind::WeightGradient);
      } else if (result.waitsForSends && action.kind == Kind::SendForward) {
        wants(Kind::WaitSendForward);
      } else if (result.waitsForSends && action.kind == Kind::SendBackward) {
        wants(Kind::WaitSendBackward);
      } else if (result.waitsForSends && action.kind == Kind::ReduceGradient) {
        wants(Kind::WaitReduceGradient);
      }
    });
    for (int32_t stage = 0; stage < result.stages; ++stage) {
      const int32_t rank = result.rankOfStage[stage];
      if (rank < 0)
        continue;
      const Place end{rank, static_cast<uint32_t>(file.ranks[rank].size()) - 1};
      for (int32_t m = 0; m < result.microBatches; ++m)
        if (!has(Kind::Forward, stage, m))
          fail(end, "expected " + nameOf({Kind::Forward, stage, m}) +
                        " in this row, got none");
      if (!has(Kind::ReduceGradient, stage))
        fail(end, "expected " + nameOf({Kind::ReduceGradient, stage}) +
                      " in this row, got none");
    }
  }

  /// Checks that each message is received as the tensor that was sent.
  void checkTensors() {
    using Messages = std::vector<std::pair<Place, Action>>;
    std::map<std::pair<int32_t, int32_t>, std::pair<Messages, Messages>> edges;
    forEach([&](const Place &place, const Action &action) {
      if (!isSend(action.kind) && !isReceive(action.kind))
        return;
      const int32_t stage = otherStage(action);
      if (stage < 0 || stage >= result.stages)
        return;
      const int32_t other = result.rankOfStage[stage];
      if (other == place.rank)
        return;
      if (isSend(action.kind))
        edges[{place.rank, other}].first.emplace_back(place, action);
      else
        edges[{other, place.rank}].second.emplace_back(place, action);
    });
    for (const auto &[edge, ends] : edges) {
      const auto &[sends, receives] = ends;
      const std::string way = " from rank " + std::to_string(edge.first) +
                              " to rank " + std::to_string(edge.second);
      const size_t both = std::min(sends.size(), receives.size());
      size_t k = 0;
      while (k < both && otherEnd(sends[k].second) == receives[k].second)
        ++k;
      const std::string message = "message " + std::to_string(k + 1) + way;
      if (k < both)
        fail(receives[k].first,
             "expected " + nameOf(otherEnd(sends[k].second)) + " for " +
                 message + ", which is " + nameOf(sends[k].second) + " in " +
                 cellOf(sends[k].first, numberOf(sends[k].first)) + ", got " +
                 nameOf(receives[k].second));
      else if (k < sends.size())
        fail(sends[k].first, "expected a receive of " + message + ", " +
                                 nameOf(sends[k].second) + ", got none");
      else if (k < receives.size())
        fail(receives[k].first, "expected a send of " + message + " for " +
                                    nameOf(receives[k].second) + ", got none");
    }
  }

  const File &file;
  Checked result;
  std::set<int32_t> severalRanks; ///< stages that are on several ranks
  std::set<Name> all;             ///< actions of the file
};

/// Runs the messages of a program in an order, until all ranks have ended or
/// none can go on.
class Rendezvous {
public:
  Rendezvous(const File &file, const std::vector<int32_t> &rankOfStage,
             MessageOrder order)
      : file(file), rankOfStage(rankOfStage), order(order),
        next(file.ranks.size(), 0) {}

  /// The ranks that wait for each other. Empty if all ranks end.
  std::vector<Fault> run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int32_t rank = 0; rank < ranks(); ++rank)
        while (next[rank] < file.ranks[rank].size() && !waitOf(rank)) {
          begin({rank, next[rank]++});
          moves = true;
        }
      for (auto &[key, queue] : queues)
        while (!queue.empty() && meets(queue.front()))
          moves = true;
    }
    for (int32_t rank = 0; rank < ranks(); ++rank)
      if (blockOf(rank))
        return cycleFrom(rank);
    return {};
  }

private:
  using Edge = std::pair<int32_t, int32_t>; ///< from rank, to rank
  using Key = std::tuple<int32_t, int32_t, int32_t>;

  /// A send or receive that has begun.
  struct Message {
    Place place;
    Action action;
    Edge edge;
    uint64_t number; ///< among the sends or the receives of the edge
  };

  int32_t ranks() const { return static_cast<int32_t>(file.ranks.size()); }

  int32_t rankAt(int32_t stage) const {
    return stage < 0 || stage >= static_cast<int32_t>(rankOfStage.size())
               ? -1
               : rankOfStage[stage];
  }

  /// The queue of messages of `rank` that a message on `edge` waits in.
  Key keyOf(int32_t rank, Edge edge) const {
    switch (order) {
    case MessageOrder::Rank:
      return {rank, 0, 0};
    case MessageOrder::Pair:
      return {rank, std::min(edge.first, edge.second),
              std::max(edge.first, edge.second)};
    case MessageOrder::Edge:
      return {rank, edge.first, edge.second};
    }
    return {};
  }

  /// Begins the messages of a cell.
  void begin(const Place &place) {
    for (const Action &action : file.ranks[place.rank][place.cell].actions) {
      if (!isSend(action.kind) && !isReceive(action.kind))
        continue;
      const int32_t other = rankAt(otherStage(action));
      if (other < 0 || other == place.rank)
        continue;
      const Edge edge = isSend(action.kind) ? Edge{place.rank, other}
                                            : Edge{other, place.rank};
      const uint64_t number = begun[{isSend(action.kind), edge}]++;
      queues[keyOf(place.rank, edge)].push_back({place, action, edge, number});
      open.insert({place.rank, action.kind, action.stage, action.microBatch});
    }
  }

  /// The queue at the other end of a message.
  std::deque<Message> &otherQueue(const Message &message) {
    const auto [from, to] = message.edge;
    return queues[keyOf(isSend(message.action.kind) ? to : from, message.edge)];
  }

  /// Ends the message at the head of a queue if its other end is at the head of
  /// the other rank's queue.
  bool meets(const Message &message) {
    const Message one = message;
    std::deque<Message> &others = otherQueue(one);
    if (others.empty() || others.front().edge != one.edge ||
        isSend(others.front().action.kind) == isSend(one.action.kind) ||
        others.front().number != one.number)
      return false;
    for (const Message &end : {one, Message(others.front())}) {
      open.erase({end.place.rank, end.action.kind, end.action.stage,
                  end.action.microBatch});
      queues[keyOf(end.place.rank, end.edge)].pop_front();
    }
    return true;
  }

  /// The message for which the next cell of `rank` waits, if it waits.
  std::optional<Action> waitOf(int32_t rank) const {
    for (const Action &action : file.ranks[rank][next[rank]].actions) {
      std::optional<Action> waited;
      if (action.kind == Kind::Forward)
        waited = {Kind::ReceiveForward, action.stage, action.microBatch};
      else if (beginsBackward(action.kind))
        waited = {Kind::ReceiveBackward, action.stage, action.microBatch};
      else if (action.kind == Kind::WaitSendForward)
        waited = {Kind::SendForward, action.stage, action.microBatch};
      else if (action.kind == Kind::WaitSendBackward)
        waited = {Kind::SendBackward, action.stage, action.microBatch};
      if (waited && open.contains({rank, waited->kind, waited->stage,
                                   waited->microBatch}))
        return waited;
    }
    return std::nullopt;
  }

  /// The message that keeps `rank` from going on or from ending: the oldest one
  /// of the queue of the message for which the rank waits.
  const Message *blockOf(int32_t rank) const {
    const bool hasEnded = next[rank] == file.ranks[rank].size();
    const std::optional<Action> waited = hasEnded ? std::nullopt : waitOf(rank);
    for (const auto &[key, queue] : queues)
      if (std::get<0>(key) == rank && !queue.empty() &&
          (hasEnded || std::ranges::any_of(queue, [&](const Message &each) {
             return each.action == waited;
           })))
        return &queue.front();
    return nullptr;
  }

  std::vector<Fault> cycleFrom(int32_t rank) const {
    std::vector<int32_t> path;
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      const Message *block = blockOf(rank);
      if (!block) { // the other rank has ended without its end of the message
        rank = path[path.size() - 2];
        break;
      }
      rank = otherRank(*block, rank);
    }
    std::vector<Fault> cycle;
    for (auto each = std::ranges::find(path, rank); each != path.end(); ++each)
      cycle.push_back(faultOf(*each));
    return cycle;
  }

  static int32_t otherRank(const Message &message, int32_t rank) {
    return message.edge.first == rank ? message.edge.second
                                      : message.edge.first;
  }

  Fault faultOf(int32_t rank) const {
    const std::vector<Cell> &row = file.ranks[rank];
    const bool hasEnded = next[rank] == row.size();
    const Message *block = blockOf(rank);
    const Place place{rank, hasEnded ? static_cast<uint32_t>(row.size()) - 1
                                     : next[rank]};
    if (!block)
      return {place, "rank " + std::to_string(rank) + " has ended"};
    const int32_t other = otherRank(*block, rank);
    std::string message = "rank " + std::to_string(rank);
    message += hasEnded ? " waits at its end for "
                        : " waits at " + nameOf(row[next[rank]]) + " for ";
    const std::optional<Action> waited = hasEnded ? std::nullopt : waitOf(rank);
    if (waited && *waited != block->action)
      message += nameOf(*waited) + ", which is after ";
    message += nameOf(block->action) + " (" +
               cellOf(block->place, row[block->place.cell].number) +
               "); rank " + std::to_string(other) + " has not begun " +
               nameOf(otherEnd(block->action));
    const auto queue = queues.find(keyOf(other, block->edge));
    if (queue != queues.end() && !queue->second.empty()) {
      const Message &head = queue->second.front();
      message += ", which is after " + nameOf(head.action) + " (" +
                 cellOf(head.place, file.ranks[other][head.place.cell].number) +
                 ")";
    }
    return {place, message};
  }

  const File &file;
  const std::vector<int32_t> &rankOfStage;
  const MessageOrder order;
  std::vector<uint32_t> next; ///< cell of each rank
  std::map<Key, std::deque<Message>> queues;
  std::map<std::pair<bool, Edge>, uint64_t> begun;
  /// Messages that have begun and not ended: rank, kind, stage, micro-batch.
  std::set<std::tuple<int32_t, Kind, int32_t, int32_t>> open;
};

} // namespace

Checked check(const File &file) {
  Checked result = Checker(file).run();
  for (size_t i = 0; i < kMessageOrders.size(); ++i)
    result.deadlocks[i] =
        Rendezvous(file, result.rankOfStage, kMessageOrders[i]).run();
  return result;
}

} // namespace chimera::schedule::torch
