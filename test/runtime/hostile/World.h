//===- World.h - Channels that keep every promise, barely -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels and all-reduces of ranks that one thread steps in virtual time. They
// do what Channels.h promises and not a bit more, so a program that relies on
// more than that shows it:
// - Bytes arrive at the wait, not before. From its post to its wait a buffer
//   that is received or summed into holds garbage, and must still hold that
//   garbage at the wait.
// - A buffer that is sent or summed must hold at its wait what it held at its
//   post. If it is handed over, it holds garbage from then on.
// - An operation completes after a time that the seed chooses, a send only
//   after its receive is posted where messages are not buffered.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_WORLD_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_WORLD_H

#include "runtime/channel/Channels.h"
#include "test/runtime/hostile/Random.h"

#include <deque>
#include <map>
#include <optional>

namespace chimera::runtime::hostile {

/// Virtual; an instruction takes at least one unit.
using Time = uint64_t;
using Memory = std::vector<std::byte>;

class World {
public:
  struct Options {
    uint32_t ranks = 1;
    /// Whether a send completes without its receive.
    bool buffered = false;
    /// The most that an operation takes once it can complete.
    Time longestDelay = 0;
  };

  World(const Options &options, Random &random);
  ~World();

  /// What `rank` is to use; lives as long as the world. Its posts and waits
  /// throw std::logic_error where a promise is broken: sizes that differ,
  /// buffers touched while they are in flight.
  Channels &of(uint32_t rank);

  /// To be told before a rank is stepped: what it posts now is posted by its
  /// instruction `index` at `now`, which never decreases.
  void enter(uint32_t rank, uint32_t index, Time now);

  /// When what `rank` posted at its instruction `index` completes; none as long
  /// as that depends on an instruction of another rank. A wait before then is
  /// an error of the caller.
  std::optional<Time> completion(uint32_t rank, uint32_t index) const;

private:
  class Endpoint;
  struct Operation;
  struct OperationRequest;
  using Shared = std::shared_ptr<Operation>;

  struct Channel {
    std::deque<Shared> sends, receives; // not matched yet
  };
  struct Reduction {
    std::vector<uint32_t> contributions;
    std::map<uint32_t, std::deque<Shared>> starts; // by rank, not joined yet
  };

  std::unique_ptr<Request> post(Shared operation);
  void matchChannel(Channel &channel);
  void join(Reduction &reduction);
  void poison(Operation &operation);
  void finish(Operation &operation);
  Time delay() { return random.below(options.longestDelay + 1); }

  Options options;
  Random &random;
  Time now = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints; // by rank
  std::vector<uint32_t> instructions;               // by rank, the present one
  std::vector<std::map<uint32_t, Shared>> posted;   // by rank, instruction
  std::map<std::pair<uint32_t, uint32_t>, Channel> channels;
  std::map<uint32_t, Reduction> reductions; // by group
};

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_WORLD_H
