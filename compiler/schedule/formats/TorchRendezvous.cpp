//===- TorchRendezvous.cpp - Deadlocks of PyTorch programs ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchRendezvous.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <tuple>

namespace chimera::schedule::torch {
namespace {

/// Runs the messages of a program in an order, until all ranks have ended or
/// none can go on.
class Rendezvous {
public:
  Rendezvous(const File &file, const std::vector<int32_t> &rankOfStage,
             const Messages &messages, MessageOrder order)
      : file(file), rankOfStage(rankOfStage), messages(messages), order(order),
        next(file.ranks.size(), 0) {}

  /// The messages that wait for each other for ever, or a message that waits
  /// for one that never comes. Empty if all ranks end.
  std::vector<Fault> run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int32_t rank = 0; rank < ranks(); ++rank)
        while (!hasEnded(rank) && !waitOf(rank)) {
          begin({rank, next[rank]++});
          moves = true;
        }
      for (auto &[key, queue] : queues)
        while (!queue.empty() && endsWithItsOther(queue.front()))
          moves = true;
    }
    for (int32_t rank = 0; rank < ranks(); ++rank)
      if (const Begun *block = blockOf(rank))
        return cycleFrom(*block);
    return {};
  }

private:
  using Key = std::tuple<int32_t, int32_t, int32_t>;

  /// A message that a rank has begun and that has not ended.
  struct Begun {
    Message message;
    Edge edge;
    uint64_t number; ///< among the sends or the receives of the edge

    bool sends() const { return isSend(message.action.kind); }
    int32_t rank() const { return message.place.rank; }
    int32_t otherRank() const { return sends() ? edge.to : edge.from; }
    bool isOtherEndOf(const Begun &other) const {
      return edge == other.edge && number == other.number &&
             sends() != other.sends();
    }
  };

  int32_t ranks() const { return static_cast<int32_t>(file.ranks.size()); }
  bool hasEnded(int32_t rank) const {
    return next[rank] == file.ranks[rank].size();
  }

  /// The queue of `rank` in which a message on `edge` waits.
  Key keyOf(int32_t rank, Edge edge) const {
    switch (order) {
    case MessageOrder::Rank:
      return {rank, 0, 0};
    case MessageOrder::Pair:
      return {rank, std::min(edge.from, edge.to), std::max(edge.from, edge.to)};
    case MessageOrder::Edge:
      return {rank, edge.from, edge.to};
    }
    return {};
  }

  /// Begins the messages of a cell.
  void begin(const Place &place) {
    for (const Action &action : file.ranks[place.rank][place.cell].actions) {
      if (!isSend(action.kind) && !isReceive(action.kind))
        continue;
      const std::optional<Edge> edge = edgeOf(action, place.rank, rankOfStage);
      if (!edge)
        continue;
      const uint64_t number = counts[{isSend(action.kind), *edge}]++;
      queues[keyOf(place.rank, *edge)].push_back(
          {{place, action}, *edge, number});
      open.insert({place.rank, action.kind, action.stage, action.microBatch});
    }
  }

  /// Ends a message at the head of a queue, and its other end, if the other end
  /// is at the head of a queue too.
  bool endsWithItsOther(const Begun &head) {
    const Begun one = head; // a copy, since the queue is about to change
    std::deque<Begun> &others = queues[keyOf(one.otherRank(), one.edge)];
    if (others.empty() || !others.front().isOtherEndOf(one))
      return false;
    const Begun other = others.front();
    for (const Begun &end : {one, other}) {
      const Action &action = end.message.action;
      open.erase({end.rank(), action.kind, action.stage, action.microBatch});
      queues[keyOf(end.rank(), end.edge)].pop_front();
    }
    return true;
  }

  /// The message for which the next cell of `rank` waits, if it waits. None if
  /// the rank has ended.
  std::optional<Action> waitOf(int32_t rank) const {
    if (hasEnded(rank))
      return std::nullopt;
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

  /// The message that keeps `rank` from going on or from ending: the head of
  /// the queue of the message for which the rank waits. Null if there is none.
  const Begun *blockOf(int32_t rank) const {
    const std::optional<Action> waited = waitOf(rank);
    for (const auto &[key, queue] : queues)
      if (std::get<0>(key) == rank && !queue.empty() &&
          (!waited || std::ranges::any_of(queue, [&](const Begun &each) {
            return each.message.action == waited;
          })))
        return &queue.front();
    return nullptr;
  }

  /// The other end of a message in the program, or null.
  const Message *otherEndOf(const Begun &one) const {
    const EdgeMessages &all = messages.at(one.edge);
    const std::vector<Message> &others = one.sends() ? all.receives : all.sends;
    return one.number < others.size() ? &others[one.number] : nullptr;
  }

  /// Follows the messages from a head of a queue to the head that keeps its
  /// other end from coming, and so on.
  std::vector<Fault> cycleFrom(const Begun &start) const {
    std::vector<const Begun *> path;
    const Begun *at = &start;
    while (at && std::ranges::find(path, at) == path.end()) {
      path.push_back(at);
      at = nextOf(*at);
    }
    std::vector<Fault> faults;
    for (auto each = at ? std::ranges::find(path, at) : std::prev(path.end());
         each != path.end(); ++each)
      faults.push_back({(*each)->message.place, describe(**each)});
    return faults;
  }

  /// The head of a queue that keeps the other end of `one` from coming. Null if
  /// the program does not have it.
  const Begun *nextOf(const Begun &one) const {
    const Message *other = otherEndOf(one);
    if (!other)
      return nullptr;
    if (isBegun(*other))
      return &queues.at(keyOf(one.otherRank(), one.edge)).front();
    return blockOf(one.otherRank());
  }

  bool isBegun(const Message &message) const {
    return message.place.cell < next[message.place.rank];
  }

  std::string nameWithCell(const Message &message) const {
    return nameOf(message.action) + " (" + nameOf(file, message.place) + ")";
  }

  std::string describe(const Begun &one) const {
    const Message *other = otherEndOf(one);
    const std::string rank = "rank " + std::to_string(one.otherRank());
    std::string text = nameWithCell(one.message) + " waits for ";
    if (!other)
      return text + (one.sends() ? "a receive" : "a send") + " that " + rank +
             " does not have";
    text += nameWithCell(*other);
    if (isBegun(*other))
      return text + ", which comes after " +
             nameOf(nextOf(one)->message.action);
    return text + ", and " + rank + " waits at " +
           nameOf(file.ranks[one.otherRank()][next[one.otherRank()]]) +
           " before it";
  }

  const File &file;
  const std::vector<int32_t> &rankOfStage;
  const Messages &messages;
  const MessageOrder order;
  std::vector<uint32_t> next; ///< cell of each rank
  std::map<Key, std::deque<Begun>> queues;
  std::map<std::pair<bool, Edge>, uint64_t> counts; ///< of begun messages
  /// Messages that have begun and not ended: rank, kind, stage, micro-batch.
  std::set<std::tuple<int32_t, Kind, int32_t, int32_t>> open;
};

} // namespace

std::vector<Fault> findDeadlock(const File &file,
                                const std::vector<int32_t> &rankOfStage,
                                const Messages &messages, MessageOrder order) {
  return Rendezvous(file, rankOfStage, messages, order).run();
}

} // namespace chimera::schedule::torch
