//===- TorchRendezvous.h - Deadlocks of PyTorch programs --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model of messages: a send ends when the other rank has begun the receive
// (rendezvous, as with NCCL). A rank begins sends and receives without waiting.
// It waits at a forward or backward for the message that the computation needs,
// and at WAIT_SEND for the send. Message number k from rank a to rank b is
// received by receive number k of rank b from rank a, whatever the tensors are.
// Messages that share an order run one after another (MessageOrder).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHRENDEZVOUS_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHRENDEZVOUS_H

#include "compiler/schedule/formats/TorchMessages.h"

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

/// An error in a cell of a program.
struct Fault {
  Place place;
  std::string message;
};

/// Runs a program. Returns the messages that wait for each other for ever, or a
/// message that waits for one that never comes. Empty if all ranks end.
/// `messages` are those of the program.
std::vector<Fault> findDeadlock(const File &file,
                                const std::vector<int32_t> &rankOfStage,
                                const Messages &messages, MessageOrder order);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHRENDEZVOUS_H
