//===- TorchProgram.cpp - Checks of PyTorch programs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchProgram.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <iterator>
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

/// The ranks at both ends of a message. Nothing if the other stage does not
/// exist or is on the same rank.
struct Edge {
  int32_t from, to;
  auto operator<=>(const Edge &) const = default;
};
std::optional<Edge> edgeOf(const Action &action, int32_t rank,
                           const std::vector<int32_t> &rankOfStage) {
  const int32_t stage = otherStage(action);
  if (stage < 0 || stage >= static_cast<int32_t>(rankOfStage.size()) ||
      rankOfStage[stage] == rank)
    return std::nullopt;
  const int32_t other = rankOfStage[stage];
  return isSend(action.kind) ? Edge{rank, other} : Edge{other, rank};
}

/// A send or a receive, and the cell that has it.
struct Message {
  Place place;
  Action action;
};

/// The messages of an edge, each list in the order of its rank. Send k is
/// received by receive k.
struct EdgeMessages {
  std::vector<Message> sends, receives;
};
using Messages = std::map<Edge, EdgeMessages>;

Messages messagesOf(const File &file, const std::vector<int32_t> &rankOfStage) {
  Messages messages;
  for (int32_t rank = 0; rank < static_cast<int32_t>(file.ranks.size()); ++rank)
    for (uint32_t cell = 0; cell < file.ranks[rank].size(); ++cell)
      for (const Action &action : file.ranks[rank][cell].actions) {
        if (!isSend(action.kind) && !isReceive(action.kind))
          continue;
        if (std::optional<Edge> edge = edgeOf(action, rank, rankOfStage)) {
          EdgeMessages &all = messages[*edge];
          (isSend(action.kind) ? all.sends : all.receives)
              .push_back({{rank, cell}, action});
        }
      }
  return messages;
}

/// Finds everything that is wrong with a program apart from deadlocks.
class Checker {
public:
  Checker(const File &file, Checked &result) : file(file), result(result) {}

  void run() {
    findSizes();
    if (result.faults.empty())
      findRanks();
    result.isPlaced = result.faults.empty();
    // Wrong numbers have too many consequences to tell.
    if (!result.isPlaced)
      return;
    for (int32_t rank = 0; rank < ranks(); ++rank)
      checkRank(rank);
    checkCompleteness();
    checkTensors();
    std::ranges::stable_sort(result.faults, {}, [](const Fault &fault) {
      return std::pair(fault.place.rank, fault.place.cell);
    });
  }

private:
  using Key = std::tuple<Kind, int32_t, int32_t>; ///< of an action
  static Key keyOf(const Action &action) {
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

  /// The computations of a stage or of a micro-batch.
  struct Uses {
    uint32_t count = 0;
    Place first{};
    Action action{};
  };

  /// Checks that `uses` has all numbers from 0 on. A valid program has at least
  /// two computations for each number. `what` is "stage" or "micro-batch".
  /// Returns how many numbers there are.
  int32_t countOf(const std::map<int32_t, Uses> &uses, const char *what) {
    int32_t expected = 0;
    for (const auto &[number, use] : uses) {
      if (use.count == 1)
        fail(use.first, std::string("expected a forward and a backward of ") +
                            what + " " + std::to_string(number) +
                            ", got only " + nameOf(use.action) +
                            ": is its number right?");
      else if (number != expected)
        fail(use.first, std::string("expected actions of ") + what + " " +
                            std::to_string(expected) + " too, got none");
      if (!result.faults.empty())
        break;
      ++expected;
    }
    return expected;
  }

  void findSizes() {
    std::map<int32_t, Uses> ofStages, ofMicroBatches;
    forEach([&](const Place &place, const Action &action) {
      result.hasSends |= isSend(action.kind);
      result.hasWaits |=
          isWaitForSend(action.kind) || action.kind == Kind::WaitReduceGradient;
      if (!computes(action.kind))
        return;
      for (Uses *use :
           {&ofStages[action.stage], &ofMicroBatches[action.microBatch]})
        if (use->count++ == 0)
          *use = {1, place, action};
    });
    for (int32_t rank = 0; rank < ranks(); ++rank)
      if (file.ranks[rank].empty())
        fail({rank, 0},
             "expected actions of rank " + std::to_string(rank) + ", got none");
    if (ofStages.empty())
      fail({0, 0}, "expected forwards and backwards, got none");
    result.stages = countOf(ofStages, "stage");
    result.microBatches = countOf(ofMicroBatches, "micro-batch");
    result.mostSends.resize(file.ranks.size());
    if (!result.faults.empty())
      return;
    forEach([&](const Place &place, const Action &action) {
      if (action.stage >= result.stages ||
          action.microBatch >= result.microBatches)
        fail(place, "expected one of " + std::to_string(result.stages) +
                        " stages and " + std::to_string(result.microBatches) +
                        " micro-batches, got " + nameOf(action));
    });
  }

  /// Finds the rank of each stage: the one that has most of its actions.
  void findRanks() {
    std::vector<std::map<int32_t, uint32_t>> counts(result.stages);
    forEach([&](const Place &place, const Action &action) {
      ++counts[action.stage][place.rank];
    });
    for (const auto &ofStage : counts)
      result.rankOfStage.push_back(
          std::ranges::max_element(ofStage, {}, [](const auto &each) {
            return each.second;
          })->first);
    forEach([&](const Place &place, const Action &action) {
      if (const int32_t rank = result.rankOfStage[action.stage];
          rank != place.rank)
        fail(place, "expected stage " + std::to_string(action.stage) +
                        " on rank " + std::to_string(rank) +
                        " only, which has most of its actions, got " +
                        nameOf(action));
    });
  }

  /// Whether a neighbour of a stage is on the same rank, so that values pass
  /// between them without a message.
  bool areTogether(int32_t stage, int32_t other) const {
    return other >= 0 && other < result.stages &&
           result.rankOfStage[stage] == result.rankOfStage[other];
  }

  /// What a rank has done up to an action.
  struct Progress {
    std::map<Key, uint32_t> done;  ///< actions, each with its cell
    std::set<int32_t> gathered;    ///< stages after UNSHARD
    std::set<int32_t> notGathered; ///< stages without UNSHARD, as reported
    int32_t sends = 0;             ///< begun and not waited for
    int32_t sum = -1;              ///< stage whose sum nobody has waited for
  };

  void checkRank(int32_t rank) {
    Progress progress;
    bool hasBlanks = false;
    for (uint32_t cell = 0; cell < file.ranks[rank].size(); ++cell) {
      const Place here{rank, cell};
      if (numberOf(here) != cell + 1 && !hasBlanks) {
        hasBlanks = true;
        fail(here, "expected no blank cells in a lowered program, got one "
                   "before " +
                       nameOf(file.ranks[rank][cell]));
      }
      for (const Action &action : file.ranks[rank][cell].actions) {
        if ((isSend(action.kind) || isReceive(action.kind)) &&
            lacksOtherEnd(here, action))
          continue;
        checkNeeds(here, action, progress);
        checkWeights(here, action, progress);
        count(here, action, progress);
      }
    }
  }

  /// Checks that the values that an action needs are there.
  void checkNeeds(const Place &here, const Action &action,
                  const Progress &progress) {
    const int32_t stage = action.stage;
    const auto has = [&](Kind kind, int32_t ofStage) {
      return progress.done.contains({kind, ofStage, action.microBatch});
    };
    const auto needs = [&](Kind kind, int32_t ofStage) {
      if (!has(kind, ofStage))
        fail(here, "expected " + nameOf({kind, ofStage, action.microBatch}) +
                       " before " + nameOf(action) + ", got none");
    };
    const auto needsBackward = [&](int32_t ofStage) {
      if (!has(Kind::InputGradient, ofStage))
        needs(Kind::Backward, ofStage);
    };
    const auto excludes = [&](Kind kind) {
      if (has(kind, stage))
        fail(here, "expected either a whole backward or its two halves, got " +
                       nameOf(action) + " after " +
                       nameOf({kind, stage, action.microBatch}));
    };
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
        needsBackward(stage + 1);
      else if (!isLast(stage))
        needs(Kind::ReceiveBackward, stage);
      excludes(action.kind == Kind::Backward ? Kind::InputGradient
                                             : Kind::Backward);
      break;
    case Kind::WeightGradient:
      needs(Kind::InputGradient, stage);
      break;
    case Kind::SendForward:
      needs(Kind::Forward, stage);
      break;
    case Kind::SendBackward:
      needsBackward(stage);
      break;
    case Kind::WaitSendForward:
      needs(Kind::SendForward, stage);
      break;
    case Kind::WaitSendBackward:
      needs(Kind::SendBackward, stage);
      break;
    case Kind::WaitReduceGradient:
      needs(Kind::ReduceGradient, stage);
      break;
    case Kind::ReceiveForward:
    case Kind::ReceiveBackward:
    case Kind::Unshard:
    case Kind::Reshard:
    case Kind::ReduceGradient:
      break;
    }
  }

  /// Checks that weights are gathered for computations, and that gradients are
  /// summed after the last computation and one stage after another.
  void checkWeights(const Place &here, const Action &action,
                    Progress &progress) {
    const int32_t stage = action.stage;
    const bool isGathered = progress.gathered.contains(stage);
    const std::string unshard = nameOf({Kind::Unshard, stage});
    if (computes(action.kind) && !isGathered &&
        progress.notGathered.insert(stage).second)
      fail(here,
           "expected " + unshard + " before " + nameOf(action) + ", got none");
    if (addsToGradient(action.kind) &&
        progress.done.contains({Kind::ReduceGradient, stage, -1}))
      fail(here, "expected " + nameOf(action) + " before " +
                     nameOf({Kind::ReduceGradient, stage}) + ", got it after");
    if (action.kind == Kind::Unshard) {
      if (isGathered)
        fail(here, "expected " + nameOf({Kind::Reshard, stage}) +
                       " before another " + unshard + ", got none");
      progress.gathered.insert(stage);
    } else if (action.kind == Kind::Reshard) {
      if (!isGathered)
        fail(here, "expected " + unshard + " before " + nameOf(action) +
                       ", got none");
      progress.gathered.erase(stage);
    } else if (action.kind == Kind::ReduceGradient) {
      if (result.hasWaits && progress.sum >= 0)
        fail(here, "expected " +
                       nameOf({Kind::WaitReduceGradient, progress.sum}) +
                       " before " + nameOf(action) + ", got none");
      progress.sum = stage;
    } else if (action.kind == Kind::WaitReduceGradient) {
      progress.sum = -1;
    }
  }

  /// Notes that an action has been done. Only UNSHARD and RESHARD may be
  /// repeated.
  void count(const Place &here, const Action &action, Progress &progress) {
    if (isSend(action.kind))
      ++progress.sends;
    else if (isWaitForSend(action.kind))
      --progress.sends;
    int32_t &most = result.mostSends[here.rank];
    most = std::max(most, progress.sends);
    auto [found, isNew] = progress.done.try_emplace(keyOf(action), here.cell);
    if (!isNew && action.kind != Kind::Unshard && action.kind != Kind::Reshard)
      fail(here, "expected " + nameOf(action) + " once, got it in " +
                     cellOf(here, numberOf({here.rank, found->second})) +
                     " too");
    all.insert(keyOf(action));
  }

  /// Fails, and returns true, if the message `action` has no other end.
  bool lacksOtherEnd(const Place &here, const Action &action) {
    if (edgeOf(action, here.rank, result.rankOfStage))
      return false;
    const int32_t other = otherStage(action);
    const bool exists = other >= 0 && other < result.stages;
    fail(here, "expected " + nameOf(action) + " only if stage " +
                   std::to_string(other) +
                   (exists ? " is on another rank, got it on the same"
                           : " exists, got no such stage"));
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
      } else if (result.hasWaits && action.kind == Kind::SendForward) {
        wants(Kind::WaitSendForward);
      } else if (result.hasWaits && action.kind == Kind::SendBackward) {
        wants(Kind::WaitSendBackward);
      } else if (result.hasWaits && action.kind == Kind::ReduceGradient) {
        wants(Kind::WaitReduceGradient);
      }
    });
    for (int32_t stage = 0; stage < result.stages; ++stage) {
      const int32_t rank = result.rankOfStage[stage];
      const Place end{rank, static_cast<uint32_t>(file.ranks[rank].size()) - 1};
      // A few of these faults are enough: a small file may lack very many
      // actions.
      for (int32_t m = 0;
           m < result.microBatches && result.faults.size() < kEnoughFaults; ++m)
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
    for (const auto &[edge, ends] : messagesOf(file, result.rankOfStage)) {
      const auto &[sends, receives] = ends;
      const size_t both = std::min(sends.size(), receives.size());
      size_t k = 0;
      while (k < both && otherEnd(sends[k].action) == receives[k].action)
        ++k;
      const std::string message = "message " + std::to_string(k + 1) +
                                  " from rank " + std::to_string(edge.from) +
                                  " to rank " + std::to_string(edge.to);
      if (k < both)
        fail(receives[k].place,
             "expected " + nameOf(otherEnd(sends[k].action)) + " for " +
                 message + ", which is " + nameOf(sends[k].action) + " in " +
                 cellOf(sends[k].place, numberOf(sends[k].place)) + ", got " +
                 nameOf(receives[k].action));
      else if (k < sends.size())
        fail(sends[k].place, "expected a receive of " + message + ", " +
                                 nameOf(sends[k].action) + ", got none");
      else if (k < receives.size())
        fail(receives[k].place, "expected a send of " + message + " for " +
                                    nameOf(receives[k].action) + ", got none");
    }
  }

  static constexpr size_t kEnoughFaults = 1000;

  const File &file;
  Checked &result;
  std::set<Key> all; ///< actions of the file
};

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

    bool isSend() const { return torch::isSend(message.action.kind); }
    int32_t rank() const { return message.place.rank; }
    int32_t otherRank() const { return isSend() ? edge.to : edge.from; }
    bool isOtherEndOf(const Begun &other) const {
      return edge == other.edge && number == other.number &&
             isSend() != other.isSend();
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
      if (!torch::isSend(action.kind) && !isReceive(action.kind))
        continue;
      const std::optional<Edge> edge = edgeOf(action, place.rank, rankOfStage);
      if (!edge)
        continue;
      const uint64_t number = counts[{torch::isSend(action.kind), *edge}]++;
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
    const std::vector<Message> &others =
        one.isSend() ? all.receives : all.sends;
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
    return nameOf(message.action) + " (" +
           cellOf(message.place,
                  file.ranks[message.place.rank][message.place.cell].number) +
           ")";
  }

  std::string describe(const Begun &one) const {
    const Message *other = otherEndOf(one);
    const std::string rank = "rank " + std::to_string(one.otherRank());
    std::string text = nameWithCell(one.message) + " waits for ";
    if (!other)
      return text + (one.isSend() ? "a receive" : "a send") + " that " + rank +
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

Checked check(const File &file) {
  Checked result;
  Checker(file, result).run();
  if (!result.isPlaced)
    return result;
  const Messages messages = messagesOf(file, result.rankOfStage);
  for (size_t i = 0; i < kMessageOrders.size(); ++i)
    result.deadlocks[i] =
        Rendezvous(file, result.rankOfStage, messages, kMessageOrders[i]).run();
  return result;
}

} // namespace chimera::schedule::torch
