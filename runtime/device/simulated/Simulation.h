//===- Simulation.h - Devices as unforgiving as GPUs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The devices of all ranks and the transfers between them, in virtual time. An
// operation that is put on a queue or posted happens later. The seed alone
// decides which one happens next, so a seed determines a run. With some seeds,
// the host, the queues or the communication of a rank are much slower than the
// others.
//
// For every seed, the simulation knows the happens-before relation. An
// operation of a queue happens after the earlier operations of that queue, and
// after the events and operations that the queue waited for. The simulation
// reports two uses of the same memory, at least one of them a write, if neither
// happened before the other. If a third use has overwritten the memory, later
// uses are compared only with the third. It also reports reads of memory that
// nothing has written.
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

/// The points at which the host orders operations. Programs can forget these.
enum class Ordering {
  After, ///< an operation begins after an event
  Wait,  ///< a queue waits for an event or an operation
  Host   ///< the host waits for an event
};

struct Options {
  uint32_t ranks = 1;
  uint64_t seed = 0;
  /// Whether one thread does everything. Then a wait of the host that nothing
  /// can end is reported as an error immediately.
  bool oneThread = true;
  /// The name of an instruction in reports.
  std::function<std::string(const Label &)> describe = {};
  /// For tests: the orderings that the simulation ignores.
  std::function<bool(const Label &, Ordering)> ignores = {};
};

/// An operation that is posted and not put on a queue: an end of a message, or
/// a member's part of an all-reduce. It begins after its event has passed and
/// the conditions of its batch are met.
struct Operation;
/// A group of operations that begin together.
struct Batch;
using SharedOperation = std::shared_ptr<Operation>;
using SharedBatch = std::shared_ptr<Batch>;

/// A movement of bytes. It happens after all of `parties` have begun and after
/// the transfer `after` has moved.
struct Transfer {
  struct Party {
    SharedOperation operation;
    bool observes; ///< its end happens after the beginnings of all parties
    bool ends;     ///< it can end after this transfer
  };
  std::vector<Party> parties;
  std::shared_ptr<Transfer> after;
  std::function<void()> move;

  // Used by the simulation only.
  uint32_t missing = 0; ///< conditions that are not met
  bool hasMoved = false;
  std::shared_ptr<Transfer> follower; ///< moves after this transfer
};

/// The simulation of all devices. Any thread may call any function, except
/// where stated otherwise.
class Simulation {
public:
  explicit Simulation(const Options &options);
  ~Simulation();
  Simulation(const Simulation &) = delete;
  Simulation &operator=(const Simulation &) = delete;

  /// The device of a rank. It lives as long as the simulation. Its addresses
  /// fault on the host.
  Device &device(uint32_t rank);

  /// The steps of a rank's host, as another kind of thing that can happen next.
  struct Host {
    std::function<bool()> isReady;
    /// Called without a lock, so it may call the simulation.
    std::function<void()> go;
  };
  void setHosts(std::vector<Host> hosts);

  /// Lets one thing happen. Returns false if nothing can. Throws the exceptions
  /// of the operation.
  bool step();

  /// Whether the queues of a rank are empty.
  bool isIdle(uint32_t rank) const;
  /// The operations that have not happened, one line each: the current
  /// operation of each queue, and posted operations that have not ended.
  std::string unfinished() const;
  /// The violations, one line each, without duplicates.
  std::vector<std::string> violations() const;

  uint64_t steps() const { return taken; }
  /// A hash of the order in which things happened.
  uint64_t order() const { return digest; }

  // Functions for channels.

  /// Posts an operation of `rank` that uses memory of its device. `what` is a
  /// string literal. The operation begins after `event` has passed, together
  /// with the others of its batch.
  SharedOperation post(uint32_t rank, const char *what,
                       std::vector<Access> accesses, Event event,
                       const SharedBatch &batch);
  SharedBatch makeBatch();
  /// Makes `batch` begin after `before` has ended. Does nothing if `before` is
  /// null or the same batch.
  void follow(const SharedBatch &batch, const SharedBatch &before);
  /// Declares the batch complete: it may begin.
  void close(const SharedBatch &batch);
  void add(std::shared_ptr<Transfer> transfer);
  /// Declares that no one waits for the operation. From now on it uses no
  /// memory.
  void abandon(const SharedOperation &operation);
  /// Puts a wait for the end of the operation on `queue`.
  void putWait(Queue &queue, SharedOperation operation);
  /// The address of the actual bytes of a rank's device, for Transfer::move.
  std::byte *find(uint32_t rank, ConstBytes bytes);
  /// Ends all waits of hosts with an error.
  void abort(const std::string &reason);

private:
  class SimulatedDevice;
  class SimulatedQueue;
  struct QueueState;
  struct Item;

  bool canExecute(const QueueState &queue) const;
  void execute(QueueState &queue);
  void begin(Operation &operation);
  void move(Transfer &transfer);
  void end(Operation &operation);
  void release(Batch &batch);
  void release(const std::shared_ptr<Transfer> &transfer);
  bool hasPassed(const Event &event) const;
  static const Clock &clockAt(const Event &event);
  bool ignores(const Label &label, Ordering ordering) const {
    return options.ignores && options.ignores(label, ordering);
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
  std::vector<std::unique_ptr<QueueState>> queues; ///< null after destruction
  std::set<SharedOperation> operations;            ///< that have not ended
  // Things that can happen next, and abandoned ones.
  std::vector<SharedOperation> canBegin, canEnd;
  std::vector<std::shared_ptr<Transfer>> canMove;
  std::vector<Host> hosts;
  /// How often each kind of thing is chosen, for each rank.
  enum Kind { HostStep, QueueStep, Begin, Move, End, kKinds };
  std::vector<std::array<uint32_t, kKinds>> weights;
  std::vector<uint64_t> epochs; ///< by thread, its last epoch
  std::vector<uint32_t> spare;  ///< threads that operations can reuse
  std::vector<std::string> found;
  std::optional<std::string> abortReason;
  uint64_t taken = 0, digest = 0;
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H
