//===- TorchProgram.cpp - Checks of PyTorch programs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchProgram.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace chimera::schedule::torch {
namespace {

bool isWaitForSend(Kind kind) {
  return kind == Kind::WaitSendForward || kind == Kind::WaitSendBackward;
}
bool addsToGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::WeightGradient;
}

/// Finds all faults of a program but deadlocks.
class Checker {
public:
  Checker(const File &file, Checked &result) : file(file), result(result) {}

  void run() {
    findSizes();
    if (result.faults.empty())
      findRanks();
    result.isPlaced = result.faults.empty();
    // A wrong number or rank causes many other faults, so report it alone.
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
  void fail(const Place &place, const std::string &message) {
    result.faults.push_back({place, message});
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
    forEachAction(file, [&](const Place &place, const Action &action) {
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
    forEachAction(file, [&](const Place &place, const Action &action) {
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
    forEachAction(file, [&](const Place &place, const Action &action) {
      ++counts[action.stage][place.rank];
    });
    for (const auto &ofStage : counts)
      result.rankOfStage.push_back(
          std::ranges::max_element(ofStage, {}, [](const auto &each) {
            return each.second;
          })->first);
    forEachAction(file, [&](const Place &place, const Action &action) {
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

  /// The actions that a rank has done so far, and the state after them.
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
    const std::vector<Cell> &row = file.ranks[rank];
    for (uint32_t cell = 0; cell < row.size(); ++cell) {
      const Place here{rank, cell};
      if (row[cell].number != cell + 1 && !hasBlanks) {
        hasBlanks = true;
        fail(here, "expected no blank cells in a lowered program, got one "
                   "before " +
                       nameOf(row[cell]));
      }
      for (const Action &action : row[cell].actions) {
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
                     nameOf(file, {here.rank, found->second}) + " too");
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
    forEachAction(file, [&](const Place &place, const Action &action) {
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
                 nameOf(file, sends[k].place) + ", got " +
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

} // namespace

Checked check(const File &file) {
  Checked result;
  Checker(file, result).run();
  if (!result.isPlaced)
    return result;
  const Messages messages = messagesOf(file, result.rankOfStage);
  for (size_t i = 0; i < kMessageOrders.size(); ++i)
    result.deadlocks[i] =
        findDeadlock(file, result.rankOfStage, messages, kMessageOrders[i]);
  return result;
}

} // namespace chimera::schedule::torch
