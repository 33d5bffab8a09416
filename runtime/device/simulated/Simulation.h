//===- Simulation.h - Devices that are as unforgiving as GPUs ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The devices of all ranks and what moves between them, in virtual time. What
// is put on a queue or posted happens later: the seed alone decides what
// happens next, so a seed is a run. Some seeds let a rank's host, queues or
// communication fall behind all others.
//
// Whatever the seed, the simulation knows what happened before what: what a
// queue executes after what was put on it before, and after what an event, or
// the end of an operation that a queue waited for, told it. It reports every
// two uses of the same memory, one of them a write, of which neither happened
// before the other; one that has been overwritten by a third is compared with
// that only. It reports reads of memory that nothing has written.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H

#include "runtime/device/simulated/Memory.h"
#include "runtime/device/simulated/Random.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>

namespace chimera::runtime::simulated {

/// Where the host orders operations: the things that can be forgotten.
enum class Ordering {
  After, ///< an operation begins after an event
  Wait,  ///< a queue waits for an event or an operation
  Host   ///< the host waits for an event
};

struct Options {
  uint32_t ranks = 1;
  uint64_t seed = 0;
  /// Whether one thread steps everything, so that a wait of the host that
  /// nothing ends is an error and does not last.
  bool oneThread = true;
  /// What an instruction is called, for reports.
  std::function<std::string(const Label &)> describe = {};
  /// For tests: orderings that are left out.
  std::function<bool(const Label &, Ordering)> isLeftOut = {};
};

/// An operation that is posted and not put on a queue: an end of a message, or
/// a member's part of an all-reduce. It begins when its event has passed and
/// its batch may.
struct Operation;
/// Operations that begin together.
struct Batch;
using SharedOperation = std::shared_ptr<Operation>;
using SharedBatch = std::shared_ptr<Batch>;

/// What moves bytes when all of `parties` have begun, and after it `behind` has
/// moved.
struct Transfer {
  struct Party {
    SharedOperation operation;
    bool learns; ///< its end happens after the beginning of all parties
    bool ends;   ///< it can end once this has moved
  };
  std::vector<Party> parties;
  std::shared_ptr<Transfer> behind;
  std::function<void()> move;

  // The simulation's.
  uint32_t missing = 0; ///< what it moves after
  bool hasMoved = false;
  std::shared_ptr<Transfer> follower; ///< that moves behind it
};

/// All calls may come from any thread, but for those that say otherwise.
class Simulation {
public:
  explicit Simulation(const Options &options);
  ~Simulation();
  Simulation(const Simulation &) = delete;
  Simulation &operator=(const Simulation &) = delete;

  /// The device of a rank, which lives as long as this. Its addresses fault on
  /// the host.
  Device &device(uint32_t rank);

  /// Something else that can be chosen to happen next: a step of a rank's host.
  struct Host {
    std::function<bool()> isReady;
    std::function<void()> go; ///< not locked: may call everything else
  };
  void setHosts(std::vector<Host> hosts);

  /// Lets one thing happen; false if nothing can. Throws what it throws.
  bool step();

  /// Whether the queues of a rank have executed all that was put on them.
  bool isIdle(uint32_t rank) const;
  /// What has not happened, a line each: of queues what they are at, and what
  /// else was posted and has not ended.
  std::string unfinished() const;
  /// What was found, a line each, each once.
  std::vector<std::string> violations() const;

  uint64_t steps() const { return taken; }
  /// A digest of the order in which things happened.
  uint64_t order() const { return digest; }

  // For channels.

  /// Posts an operation of `rank` that uses memory of its device. `what` is a
  /// literal. It begins after `event` has passed, with those of its batch.
  SharedOperation post(uint32_t rank, const char *what,
                       std::vector<Access> accesses, Event event,
                       const SharedBatch &batch);
  SharedBatch makeBatch();
  /// `batch` begins after all of `before`, if there is one and it is another.
  void follow(const SharedBatch &batch, const SharedBatch &before);
  /// No more operations come to the batch: it may begin.
  void close(const SharedBatch &batch);
  void add(std::shared_ptr<Transfer> transfer);
  /// Nobody waits for it any more: it touches no memory from now on.
  void abandon(const SharedOperation &operation);
  /// Puts on `queue` that it waits until the operation has ended.
  void putWait(Queue &queue, SharedOperation operation);
  /// Where bytes of a rank's device are. For the move of a transfer.
  std::byte *find(uint32_t rank, ConstBytes bytes);
  /// Ends all waits of hosts.
  void abort(const std::string &reason);

private:
  class SimulatedDevice;
  class SimulatedQueue;
  struct QueueState;
  struct Item;

  bool canGo(const QueueState &queue) const;
  void go(QueueState &queue);
  void begin(Operation &operation);
  void move(Transfer &transfer);
  void end(Operation &operation);
  void release(Batch &batch);
  void release(const std::shared_ptr<Transfer> &transfer);
  bool hasPassed(const Event &event) const;
  static const Clock &clockAt(const Event &event);
  bool isLeftOut(const Label &label, Ordering ordering) const {
    return options.isLeftOut && options.isLeftOut(label, ordering);
  }
  uint32_t threadFor(const Clock &clock);
  bool stepLocked(std::unique_lock<std::recursive_mutex> &lock, bool withHosts);
  void waitFor(Event event, std::chrono::milliseconds timeout);
  std::string nameOf(const Label &label) const;
  void note(const std::vector<Violation> &found);

  const Options options;
  mutable std::recursive_mutex mutex;
  std::condition_variable_any changed;
  Random random;
  std::vector<std::unique_ptr<SimulatedDevice>> devices;
  std::vector<std::unique_ptr<QueueState>> queues; ///< null once destroyed
  std::set<SharedOperation> operations;            ///< not ended
  // What can happen next, but for what is abandoned.
  std::vector<SharedOperation> canBegin, canEnd;
  std::vector<std::shared_ptr<Transfer>> canMove;
  std::vector<Host> hosts;
  /// How often each kind of thing of each rank is chosen.
  enum Kind { HostStep, QueueStep, Begin, Move, End, kKinds };
  std::vector<std::array<uint32_t, kKinds>> weights;
  std::vector<uint64_t> epochs; ///< the last of each thread
  std::vector<uint32_t> spare;  ///< threads of operations
  std::vector<std::string> found;
  std::optional<std::string> abortReason;
  uint64_t taken = 0, digest = 0;
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H
