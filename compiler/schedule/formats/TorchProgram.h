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
// TorchRendezvous.h says when messages wait.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHPROGRAM_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHPROGRAM_H

#include "compiler/schedule/formats/TorchRendezvous.h"

#include <array>

namespace chimera::schedule::torch {

/// The result of a check.
struct Checked {
  int32_t stages = 0, microBatches = 0;
  /// Whether the numbers of stages and micro-batches are right, and each stage
  /// is on one rank. If not, `faults` says why, and nothing else is checked.
  bool isPlaced = false;
  std::vector<int32_t> rankOfStage;
  /// Whether the program waits for sends and sums, as torch 2.15 requires.
  bool hasWaits = false;
  /// The faults that do not depend on the order of messages, by rank and cell:
  /// missing, repeated or misplaced actions, and messages that are received as
  /// another tensor.
  std::vector<Fault> faults;
  /// For each of kMessageOrders, the result of findDeadlock.
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
