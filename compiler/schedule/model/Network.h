//===- Network.h - Times of messages and all-reduces ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tick is the unit of all times (TimeUnit.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_NETWORK_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_NETWORK_H

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace chimera::schedule {

/// The algorithm of an all-reduce over r replicas.
enum class AllReduceAlgorithm : uint8_t {
  Rabenseifner, ///< recursive halving, then doubling: 2 log2(r) messages, which
                ///< move 2 (r-1)/r times the bytes
  Doubling,     ///< recursive doubling: log2(r) messages, each of all bytes
};

/// A linear time model: b bytes take alpha + b · beta / betaBytes ticks,
/// rounded up.
struct MessageTime {
  int64_t alpha = 0;     ///< at least 0
  int64_t beta = 0;      ///< time for every `betaBytes` bytes, at least 0
  int64_t betaBytes = 1; ///< at least 1
};

/// The value of `betaBytes` if a user gives the time: users give beta as a time
/// per MiB.
inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// The three times of a message between two workers. After the action that
/// produces the message, its worker is busy for the time `send`. Then the
/// message is in flight for the time of the base class, and no worker is busy.
/// Before the action that needs the message, the receiving worker is busy for
/// the time `receive`, even if the message arrived long ago. Messages never
/// delay each other.
struct Link : MessageTime {
  MessageTime send = {}, receive = {};

  /// The three times: in flight, `send`, `receive`.
  std::array<MessageTime, 3> times() const { return {*this, send, receive}; }
};

/// The times of messages and all-reduces on links of one kind.
struct LinkClass {
  Link link;
  /// The time of each message of an all-reduce. If it is not given, such a
  /// message takes the sum of the three times of `link`.
  std::optional<MessageTime> allReduceMessage = {};
  /// The time of an all-reduce apart from its messages: alpha for each bucket,
  /// and beta once for all bytes.
  MessageTime allReduceOverhead = {};
};

/// Describes the nodes, which are all alike. A node has devices with
/// consecutive numbers. The links between these devices are of another class
/// than the links between nodes.
struct Node {
  int32_t devices = 1;  ///< number of devices, at least 1
  LinkClass links = {}; ///< links between devices of the node
  /// Number of CPU cores that the node's devices share equally. 0: every device
  /// has a core of its own (simulate/Clock.h).
  int32_t cores = 0;
};

/// The times of messages and all-reduces between workers. The base class has
/// the times of links between nodes, and `node` has the times of links within a
/// node.
struct Network : LinkClass {
  AllReduceAlgorithm allReduceAlgorithm = AllReduceAlgorithm::Rabenseifner;
  /// True if an all-reduce makes progress only while its workers wait for it.
  /// Then no all-reduce overlaps with computation or updates.
  bool blockingAllReduces = false;
  std::optional<Node> node; ///< if empty, all links have the times of the base
                            ///< class

  /// The classes of links: the base class and, if there is a node,
  /// `node->links`.
  std::vector<const LinkClass *> classes() const;
  std::vector<LinkClass *> classes();
  /// True if some message is in flight for longer than 0.
  bool hasFlights() const;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_NETWORK_H
