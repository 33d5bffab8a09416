//===- TorchCsv.h - Schedule files of PyTorch -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files that schedules of torch.distributed.pipelining write and load. A
// file has a row for each rank. A cell of a row is an action, such as 0F3 (the
// forward of micro-batch 3 on stage 0), or blank (an idle slot):
//
//   F, B, I, W             forward, whole backward, input gradient, weight
//                          gradient
//   (0F7;7B3)OVERLAP_F_B   a forward and a whole backward that run at once
//   SEND_F, RECV_F         an activation: to the next stage, from the previous
//                          stage
//   SEND_B, RECV_B         a gradient: to the previous stage, from the next
//                          stage
//   WAIT_SEND_F, _B        waits until a send has ended (since torch 2.15)
//   UNSHARD, RESHARD       gathers and frees the weights of a stage
//   REDUCE_GRAD            begins to sum the gradients of a stage over replicas
//   WAIT_REDUCE_GRAD       waits for this sum (since torch 2.15)
//
// The last four have no micro-batch. There are two kinds of files. A file of
// computations (compute_only) has F, B, I, W and pairs. A lowered program
// (compute_comms) has all actions in the order in which a rank executes them,
// without blanks.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHCSV_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHCSV_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::schedule::torch {

enum class Kind : uint8_t {
  // Computations come first.
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,
  WaitSendForward,
  WaitSendBackward,
  Unshard,
  Reshard,
  ReduceGradient,
  WaitReduceGradient,
};

/// Whether an action of this kind is a computation.
constexpr bool computes(Kind kind) { return kind <= Kind::WeightGradient; }
/// Whether it begins the backward of its stage, with the gradient of the
/// stage's output.
constexpr bool beginsBackward(Kind kind) {
  return kind == Kind::Backward || kind == Kind::InputGradient;
}
constexpr bool isSend(Kind kind) {
  return kind == Kind::SendForward || kind == Kind::SendBackward;
}
constexpr bool isReceive(Kind kind) {
  return kind == Kind::ReceiveForward || kind == Kind::ReceiveBackward;
}

struct Action {
  Kind kind;
  int32_t stage;
  int32_t microBatch = -1; ///< -1 if actions of this kind have none

  bool operator==(const Action &) const = default;
};

/// A cell that is not blank.
struct Cell {
  /// One action, or the forward and the backward of a pair.
  std::vector<Action> actions;
  uint32_t number; ///< in the row, from 1; blank cells count
  uint32_t column; ///< in the line, from 1
};

struct File {
  std::vector<std::vector<Cell>> ranks;

  /// Whether this is a lowered program.
  bool isLowered() const;
};

/// The place of a cell: `file.ranks[rank][cell]`.
struct Place {
  int32_t rank;
  uint32_t cell;

  bool operator==(const Place &) const = default;
};

/// Calls `visit(place, action)` for each action of a file, rank by rank.
template <typename Visit> void forEachAction(const File &file, Visit visit) {
  for (size_t rank = 0; rank < file.ranks.size(); ++rank)
    for (size_t cell = 0; cell < file.ranks[rank].size(); ++cell)
      for (const Action &action : file.ranks[rank][cell].actions)
        visit(Place{static_cast<int32_t>(rank), static_cast<uint32_t>(cell)},
              action);
}

/// An error in the text of a file.
struct ReadError {
  size_t line, column; ///< from 1
  std::string message;
};

/// Whether `text` looks like such a file: its first line with a cell that is
/// not blank has commas, and this cell begins with a number and a kind, or with
/// an opening bracket.
bool isTorchCsv(std::string_view text);

/// Reads `text` into `file`. Returns the first error, if any. Unlike torch,
/// refuses a cell that has more text after an action. A row of blank cells is a
/// rank without actions. Lines without commas at the end are no rows if they
/// are blank.
std::optional<ReadError> read(std::string_view text, File &file);

/// "0SEND_F6".
std::string nameOf(const Action &action);
/// "0F6", or "(0F7;7B3)OVERLAP_F_B".
std::string nameOf(const Cell &cell);
/// "cell 5 of rank 0". Cells are counted from 1.
std::string nameOf(const File &file, const Place &place);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHCSV_H
