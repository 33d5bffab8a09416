//===- TorchProgramTest.cpp - Checks of PyTorch programs ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchProgram.h"
#include "test/compiler/schedule/formats/TorchFiles.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule::torch {
namespace {

std::string textOf(const std::vector<Fault> &faults) {
  std::string text;
  for (const Fault &fault : faults)
    text += std::to_string(fault.place.rank) + ":" +
            std::to_string(fault.place.cell) + ": " + fault.message + "\n";
  return text;
}

/// Expects no faults, and that all ranks end with each order of messages.
void expectSafe(const Checked &checked) {
  EXPECT_EQ(textOf(checked.faults), "");
  for (const std::vector<Fault> &deadlock : checked.deadlocks)
    EXPECT_EQ(textOf(deadlock), "");
}

constexpr const char *kPrograms[] = {"DualPipeV.compute_comms",
                                     "Interleaved1F1B.compute_comms",
                                     "ZBVZeroBubble.compute_comms"};

TEST(TorchProgram, ProgramsOfTorchAreSafe) {
  for (const char *name : kPrograms) {
    SCOPED_TRACE(name);
    const Checked checked = check(readText(textOfTorch(name)));
    expectSafe(checked);
    EXPECT_EQ(checked.stages, 8);
    EXPECT_EQ(checked.microBatches, 8);
    EXPECT_TRUE(checked.hasWaits);
  }
  const Checked looped =
      check(readText(textOfTorch("Interleaved1F1B.compute_comms")));
  EXPECT_EQ(looped.rankOfStage, (std::vector{0, 1, 2, 3, 0, 1, 2, 3}));
  // All sends of gradients are waited for at the end: 8 on rank 0, which has
  // the first stage, and 16 on each of the other ranks.
  EXPECT_GE(looped.mostSends[0], 8);
  for (size_t rank : {1, 2, 3})
    EXPECT_GE(looped.mostSends[rank], 16);
  const Checked vShaped =
      check(readText(textOfTorch("ZBVZeroBubble.compute_comms")));
  EXPECT_EQ(vShaped.rankOfStage, (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
}

/// Every action but RESHARD is needed. Another one at the end of the row is a
/// fault, except UNSHARD.
TEST(TorchProgram, EachMissingAndEachRepeatedActionIsAFault) {
  for (const char *name : kPrograms) {
    const File whole = readText(textOfTorch(name));
    for (size_t rank = 0; rank < whole.ranks.size(); ++rank)
      for (size_t cell = 0; cell < whole.ranks[rank].size(); ++cell) {
        const Kind kind = whole.ranks[rank][cell].actions[0].kind;
        if (kind == Kind::Reshard)
          continue;
        SCOPED_TRACE(std::string(name) + " rank " + std::to_string(rank) +
                     ", " + nameOf(whole.ranks[rank][cell]));
        File missing = whole;
        std::vector<Cell> &row = missing.ranks[rank];
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(cell));
        EXPECT_FALSE(check(missing).faults.empty());
        if (kind == Kind::Unshard)
          continue;
        File repeated = whole;
        repeated.ranks[rank].push_back(whole.ranks[rank][cell]);
        EXPECT_FALSE(check(repeated).faults.empty());
      }
  }
}

/// If two messages in one direction change places at one end, a rank receives
/// one tensor as another.
TEST(TorchProgram, MessagesThatChangePlacesAreFaults) {
  const File whole = readText(textOfTorch("ZBVZeroBubble.compute_comms"));
  std::vector<Cell> row = whole.ranks[1];
  auto find = [&](const char *name) {
    return std::ranges::find(row, name,
                             [](const Cell &cell) { return nameOf(cell); });
  };
  std::swap(find("1RECV_F6")->actions, find("6RECV_B0")->actions);
  File changed = whole;
  changed.ranks[1] = row;
  const std::string faults = textOf(check(changed).faults);
  EXPECT_NE(faults.find("expected 1RECV_F6 for message 7 from rank 0 to rank "
                        "1, which is 0SEND_F6 in cell"),
            std::string::npos)
      << faults;
}

// Two stages on two ranks, two micro-batches. Both ranks send before they
// receive.
constexpr const char *kSendsFirst = "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_"
                                    "B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
                                    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_"
                                    "F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n";

TEST(TorchProgram, RanksThatSendToEachOtherFirstAreStuck) {
  const Checked checked = check(readText(kSendsFirst));
  EXPECT_EQ(textOf(checked.faults), "");
  EXPECT_FALSE(checked.hasWaits);
  const std::string stuck =
      "0:4: 0SEND_F1 (cell 5 of rank 0) waits for 1RECV_F1 (cell 6 of rank 1), "
      "which comes after 1SEND_B0\n"
      "1:4: 1SEND_B0 (cell 5 of rank 1) waits for 0RECV_B0 (cell 6 of rank 0), "
      "which comes after 0SEND_F1\n";
  EXPECT_EQ(textOf(checked.deadlocks[0]), stuck);
  EXPECT_EQ(textOf(checked.deadlocks[1]), stuck);
  EXPECT_EQ(textOf(checked.deadlocks[2]), "");
}

TEST(TorchProgram, AWaitForASendMayBlock) {
  // Each rank waits for its send before it begins the receive.
  std::string text = kSendsFirst;
  text.replace(text.find("0RECV_B0"), 0, "0WAIT_SEND_F0,0WAIT_SEND_F1,");
  text.replace(text.find("1RECV_F1"), 0, "1WAIT_SEND_B0,");
  text.replace(text.find("1REDUCE_GRAD"), 12,
               "1WAIT_SEND_B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD");
  text.replace(text.find("0REDUCE_GRAD"), 12, "0REDUCE_GRAD,0WAIT_REDUCE_GRAD");
  const Checked checked = check(readText(text));
  EXPECT_EQ(textOf(checked.faults), "");
  EXPECT_TRUE(checked.hasWaits);
  for (const std::vector<Fault> &deadlock : checked.deadlocks)
    EXPECT_EQ(textOf(deadlock),
              "0:4: 0SEND_F1 (cell 5 of rank 0) waits for 1RECV_F1 (cell 7 of "
              "rank 1), and rank 1 waits at 1WAIT_SEND_B0 before it\n"
              "1:4: 1SEND_B0 (cell 5 of rank 1) waits for 0RECV_B0 (cell 8 of "
              "rank 0), and rank 0 waits at 0WAIT_SEND_F1 before it\n");
}

/// A rank may wait for a rank that waits for others, while a message at the
/// head of its queue is one of those that wait for each other.
TEST(TorchProgram, ACycleHasTheMessagesThatWaitForEachOther) {
  const Checked checked = check(readText(
      "0UNSHARD,3UNSHARD,3RECV_F0,0F0,0SEND_F0,3F0,3SEND_F0,3RECV_B0,3I0,"
      "3WAIT_SEND_F0,3SEND_B0,3WAIT_SEND_B0,3W0,0RECV_B0,0WAIT_SEND_F0,"
      "0I0,0W0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,3REDUCE_GRAD,"
      "3WAIT_REDUCE_GRAD\n"
      "1UNSHARD,4UNSHARD,1RECV_F0,1F0,1SEND_F0,4RECV_B0,4RECV_F0,4F0,"
      "4SEND_F0,4I0,4SEND_B0,4W0,1RECV_B0,1B0,1SEND_B0,1WAIT_SEND_F0,"
      "4WAIT_SEND_F0,4WAIT_SEND_B0,1WAIT_SEND_B0,1REDUCE_GRAD,"
      "1WAIT_REDUCE_GRAD,4REDUCE_GRAD,4WAIT_REDUCE_GRAD\n"
      "2UNSHARD,5UNSHARD,2RECV_F0,2RECV_B0,2F0,2SEND_F0,5RECV_F0,5F0,"
      "2WAIT_SEND_F0,5B0,5SEND_B0,2I0,2SEND_B0,2WAIT_SEND_B0,2W0,"
      "5WAIT_SEND_B0,2REDUCE_GRAD,2WAIT_REDUCE_GRAD,5REDUCE_GRAD,"
      "5WAIT_REDUCE_GRAD\n"));
  EXPECT_EQ(textOf(checked.faults), "");
  EXPECT_EQ(textOf(checked.deadlocks[0]),
            "0:2: 3RECV_F0 (cell 3 of rank 0) waits for 2SEND_F0 (cell 6 of "
            "rank 2), and rank 2 waits at 2F0 before it\n"
            "2:2: 2RECV_F0 (cell 3 of rank 2) waits for 1SEND_F0 (cell 5 of "
            "rank 1), and rank 1 waits at 1F0 before it\n"
            "1:2: 1RECV_F0 (cell 3 of rank 1) waits for 0SEND_F0 (cell 5 of "
            "rank 0), which comes after 3RECV_F0\n");
  EXPECT_EQ(textOf(checked.deadlocks[1]),
            "0:2: 3RECV_F0 (cell 3 of rank 0) waits for 2SEND_F0 (cell 6 of "
            "rank 2), which comes after 2RECV_B0\n"
            "2:3: 2RECV_B0 (cell 4 of rank 2) waits for 3SEND_B0 (cell 11 of "
            "rank 0), and rank 0 waits at 3F0 before it\n");
  EXPECT_EQ(textOf(checked.deadlocks[2]), "");
}

/// Nothing but WAIT_REDUCE_GRAD says that such a program is of torch 2.15.
TEST(TorchProgram, ARankAloneMayWaitForItsSumsOnly) {
  const std::string text = "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1REDUCE_GRAD,0B0,"
                           "1WAIT_REDUCE_GRAD,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n";
  const Checked checked = check(readText(text));
  expectSafe(checked);
  EXPECT_TRUE(checked.hasWaits);
  EXPECT_EQ(checked.mostSends, std::vector{0});
  std::string missing = text;
  missing.replace(missing.find("1WAIT_REDUCE_GRAD,"), 18, "");
  EXPECT_EQ(textOf(check(readText(missing)).faults),
            "0:5: expected 1WAIT_REDUCE_GRAD after 1REDUCE_GRAD, got none\n"
            "0:7: expected 1WAIT_REDUCE_GRAD before 0REDUCE_GRAD, got none\n");
}

/// A small file may name a large number. The error is at this number, and the
/// check takes little memory.
TEST(TorchProgram, AStrayNumberIsTheOnlyFault) {
  std::string text;
  for (int stage = 0; stage < 1500; ++stage)
    text += std::to_string(stage) + "UNSHARD," + std::to_string(stage) + "F0," +
            std::to_string(stage) + "B0,";
  const Checked checked = check(readText(text + "0F65534\n"));
  EXPECT_FALSE(checked.isPlaced);
  EXPECT_EQ(textOf(checked.faults),
            "0:4500: expected a forward and a backward of micro-batch 65534, "
            "got only 0F65534: is its number right?\n");
}

TEST(TorchProgram, MisplacedActionsAreFaults) {
  struct Change {
    const char *from, *to, *message;
  };
  for (const Change &change : std::initializer_list<Change>{
           {"1RECV_F0,1F0", "1F0,1RECV_F0",
            "expected 1RECV_F0 before 1F0, got none"},
           {"0UNSHARD,", "", "expected 0UNSHARD before 0F0, got none"},
           {"0UNSHARD,0F0", "0UNSHARD,0RESHARD,0F0",
            "expected 0UNSHARD before 0F0, got none"},
           {"0F0,0SEND_F0", "0SEND_F0,0F0",
            "expected 0F0 before 0SEND_F0, got none"},
           {"0B1,0REDUCE_GRAD", "0REDUCE_GRAD,0B1",
            "expected 0B1 before 0REDUCE_GRAD, got it after"},
           {",0REDUCE_GRAD", "", "expected 0REDUCE_GRAD in this row, got none"},
           {"0B1", "0I1", "expected 0W1 after 0I1, got none"},
           {"0B1", "0W1", "expected 0I1 before 0W1, got none"},
           {"1F1,1B1", "1F1,1SEND_F1,1B1",
            "expected 1SEND_F1 only if stage 2 exists, got no such stage"},
           {"0SEND_F1", "0SEND_F9",
            "expected one of 2 stages and 2 micro-batches, got 0SEND_F9"},
           {"0B1", "0B1,0I1,0W1",
            "expected either a whole backward or its two halves, got 0I1 after "
            "0B1"},
           {"0UNSHARD,", "0UNSHARD,0UNSHARD,",
            "expected 0RESHARD before another 0UNSHARD, got none"},
           {"0UNSHARD,", "0RESHARD,0UNSHARD,",
            "expected 0UNSHARD before 0RESHARD, got none"},
           {"0F1,", ",0F1,",
            "expected no blank cells in a lowered program, got one before 0F1"},
           {"1UNSHARD", ",\n1UNSHARD", "expected actions of rank 1, got none"},
           {"1F1,1B1", "1F1,1B1,3F1,3B1",
            "expected actions of stage 2 too, got none"},
           {"0F1,", "0F1,0F2,",
            "expected a forward and a backward of micro-batch 2, got only 0F2: "
            "is its number right?"},
           {"0F1,", "0F1,1F1,",
            "expected stage 1 on rank 1 only, which has most of its actions, "
            "got "
            "1F1"},
           {"1F1,1B1", "3F1,1F1,1B1",
            "expected a forward and a backward of stage 3, got only 3F1: is "
            "its "
            "number right?"},
           {"0F1,", "0F1,0F1,",
            "expected 0F1 once, got it in cell 4 of rank 0 too"},
           {"0SEND_F1,", "", "expected 0SEND_F1 after 0F1, got none"},
           {"1SEND_B1,", "",
            "expected a send of message 2 from rank 1 to rank 0 for 0RECV_B1, "
            "got none"},
           {"0RECV_B1,", "",
            "expected a receive of message 2 from rank 1 to rank 0, 1SEND_B1, "
            "got none"}}) {
    std::string text = kSendsFirst;
    text.replace(text.find(change.from), std::string(change.from).size(),
                 change.to);
    const std::string faults = textOf(check(readText(text)).faults);
    EXPECT_NE(faults.find(change.message), std::string::npos)
        << text << faults << "not: " << change.message;
  }
}

TEST(TorchProgram, NeighboursOnOneRankSendNothing) {
  const std::string text =
      "0UNSHARD,1UNSHARD,0F0,1F0,1I0,0B0,1W0,0REDUCE_GRAD,1REDUCE_GRAD\n";
  expectSafe(check(readText(text)));
  std::string sends = text;
  sends.replace(sends.find("1F0"), 0, "0SEND_F0,");
  EXPECT_EQ(textOf(check(readText(sends)).faults),
            "0:3: expected 0SEND_F0 only if stage 1 is on another rank, got it "
            "on the same\n");
}

} // namespace
} // namespace chimera::schedule::torch
