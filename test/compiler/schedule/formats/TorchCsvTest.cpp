//===- TorchCsvTest.cpp - Schedule files of PyTorch ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchCsv.h"
#include "test/compiler/schedule/formats/TorchFiles.h"

#include <gtest/gtest.h>

namespace chimera::schedule::torch {
namespace {

constexpr const char *kFiles[] = {
    "DualPipeV.compute_only",       "DualPipeV.compute_comms",
    "Interleaved1F1B.compute_only", "Interleaved1F1B.compute_comms",
    "LoopedBFS.compute_only",       "ZBVZeroBubble.compute_only",
    "ZBVZeroBubble.compute_comms"};

/// The text of a file: all cells, with blank ones before each cell as its
/// number says.
std::string textOf(const File &file) {
  std::string text;
  for (const std::vector<Cell> &row : file.ranks) {
    uint32_t number = 1;
    for (const Cell &cell : row) {
      for (; number < cell.number; ++number)
        text += ',';
      text += nameOf(cell);
    }
    text += "\r\n";
  }
  return text;
}

TEST(TorchCsv, FilesOfTorchAreReadAndGiveTheSameText) {
  for (const std::string name : kFiles) {
    SCOPED_TRACE(name);
    const std::string text = textOfTorch(name);
    EXPECT_TRUE(isTorchCsv(text));
    const File file = readText(text);
    EXPECT_EQ(file.ranks.size(), 4u);
    EXPECT_EQ(file.isLowered(), name.ends_with("comms"));
    EXPECT_EQ(textOf(file), text);
  }
}

TEST(TorchCsv, CellsAreReadWithTheirPlaces) {
  const File file = readText("\n,0F0 , ,(10F7;3B2)OVERLAP_F_B\n\n");
  ASSERT_EQ(file.ranks.size(), 2u);
  EXPECT_TRUE(file.ranks[0].empty());
  const std::vector<Cell> &row = file.ranks[1];
  ASSERT_EQ(row.size(), 2u);
  EXPECT_EQ(row[0].actions, (std::vector<Action>{{Kind::Forward, 0, 0}}));
  EXPECT_EQ(row[0].number, 2u);
  EXPECT_EQ(row[0].column, 2u);
  EXPECT_EQ(row[1].actions, (std::vector<Action>{{Kind::Forward, 10, 7},
                                                 {Kind::Backward, 3, 2}}));
  EXPECT_EQ(row[1].number, 4u);
  EXPECT_EQ(row[1].column, 9u);
}

TEST(TorchCsv, MalformedCellsAreErrorsAtTheirPlaces) {
  // torch reads the first of these as 0F0.
  for (const char *cell :
       {"0F0 trailing", "0F", "F0", "0X0", "0UNSHARD1", "0F0x", "70000F0",
        "0F65535", "-1F0", "(0F0;1B0)", "(0F0)OVERLAP_F_B",
        "(0B0;1F0)OVERLAP_F_B", "(0F0;1I0)OVERLAP_F_B", "(0F0;1B0OVERLAP_F_B",
        ")OVERLAP_F_B", "0SEND_X0", "0WAIT_SEND_F", "(0F0;0B0)OVERLAP_F_B"}) {
    File file;
    const std::optional<ReadError> error =
        read(std::string("0F0,0B0\r\n,1F0, ") + cell + ",1B0\r\n", file);
    ASSERT_TRUE(error) << cell;
    EXPECT_EQ(error->line, 2u) << cell;
    EXPECT_EQ(error->column, 7u) << cell;
    EXPECT_NE(error->message.find(std::string(", got ") + cell),
              std::string::npos)
        << error->message;
  }
  File file;
  EXPECT_TRUE(read("", file));
  EXPECT_FALSE(read("0F0,0B0\n,,\n\n", file));
  EXPECT_EQ(file.ranks.size(), 2u); // the second without actions
}

TEST(TorchCsv, OtherTextsAreNone) {
  for (const char *text :
       {"", "\n", "P0: F0 B0", "0F0 0B0\n1F0 1B0", "F0, F1, B0",
        "chimera.pipeline @p stages(2), micro_batches(2)", "{\"a\": 0, 1: 2}",
        "1,2,3\n", "// a, b"})
    EXPECT_FALSE(isTorchCsv(text)) << text;
  for (const char *text : {"0F0,0B0", "\r\n,,3F0", ",,\n1F0,1B0",
                           "0UNSHARD,0F0", "(0F1;0B0)OVERLAP_F_B,0B1"})
    EXPECT_TRUE(isTorchCsv(text)) << text;
}

} // namespace
} // namespace chimera::schedule::torch
