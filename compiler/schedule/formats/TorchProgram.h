//===- TorchProgram.h - Checks of PyTorch programs --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks a lowered program of torch.distributed.pipelining (TorchCsv.h), as it
// is. torch itself accepts programs that then wait for ever or train wrongly.
//
// The model of messages: a send ends when the other rank has begun the receive
// (rendezvous, as with NCCL). A rank begins sends and receives without waiting.
// It waits at a forward or backward for the message that the computation needs,
// and at WAIT_SEND for the send. Message number k from rank a to rank b is
// received by receive number k of rank b from rank a, whatever the tensors are.
// Messages that share an order run one after another (MessageOrder).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHPROGRAM_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHPROGRAM_H

#include "compiler/schedule/formats/TorchCsv.h"

#include <array>

namespace chimera::schedule::torch {

/// Which messages of a rank run one after another.
enum class MessageOrder : uint8_t {
  Rank, ///< all: one NCCL communicator for all ranks (eager initialisation)
  Pair, ///< all with the same other rank: a communicator for each pair (NCCL's
        ///< default)
  Edge, ///< all in one direction with the same other rank
        ///< (pipeline_per_edge_p2p, gloo)
};
inline constexpr std::array kMessageOrders = {
    MessageOrder::Rank, MessageOrder::Pair, MessageOrder::Edge};

/// A cell of a file: `file.ranks[rank][cell]`.
struct Place {
  int32_t rank;
  uint32_t cell;

  bool operator==(const Place &) const = default;
};

struct Fault {
  Place place;
  std::string message;
};

/// What is known about a lowered program.
struct Checked {
  int32_t stages = 0, microBatches = 0;
  /// Whether the numbers of stages and micro-batches are right, and each stage
  /// is on one rank. If not, `faults` says why, and nothing else is checked.
  bool isPlaced = false;
  std::vector<int32_t> rankOfStage;
  bool hasSends = false;
  /// Whether the program waits for sends and sums, as torch 2.15 requires.
  bool hasWaits = false;
  /// What is wrong with any order of messages, by rank and cell: missing,
  /// repeated or misplaced actions, and messages that are received as another
  /// tensor.
  std::vector<Fault> faults;
  /// For each of kMessageOrders, the messages that wait for each other for
  /// ever, or a message that waits for one that never comes. Empty if all ranks
  /// end.
  std::array<std::vector<Fault>, kMessageOrders.size()> deadlocks;
  /// The largest number of sends of each rank that have begun and have not been
  /// waited for. PyTorch keeps their tensors.
  std::vector<int32_t> mostSends;
};

/// Checks a file. Of the rules of FSDP, checks that UNSHARD and RESHARD of a
/// stage take turns, and that the stage computes between them. Requires
/// file.isLowered().
Checked check(const File &file);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHPROGRAM_H
