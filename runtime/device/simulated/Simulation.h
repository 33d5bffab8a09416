//===- Simulation.h - Devices as unforgiving as GPUs ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The devices of all ranks and the transfers between them, in virtual time. An
// operation that is put on a queue or posted happens later. The seed alone
// decides which operation happens next, so a seed determines a run. With some
// seeds, the host, the queues or the communication of a rank are much slower
// than the others.
//
// For every seed, the simulation knows the happens-before relation. An
// operation of a queue happens after the earlier operations of this queue, and
// after the events and operations that the queue waited for. The simulation
// reports two uses of the same memory, at least one of them a write, if neither
// happened before the other. A use is compared only with the last write of the
// memory and with the reads since this write. The simulation also reports reads
// of memory that nothing has written.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H

#include "runtime/device/simulated/Memory.h"
#include "runtime/device/simulated/Random.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace chimera::runtime::simulated {

/// The ways in which a program orders operations. A wrong program may omit
/// them.
enum class Ordering {
  After, ///< a posted operation begins after an event
  Wait,  ///< a queue waits for an event or an operation
  Host   ///< the host waits for an event
};

struct Options {
  uint32_t ranks = 1;
  uint64_t seed = 0;
  /// Whether one thread runs all hosts and the simulation. Then, if the host
  /// waits and nothing else can happen, the wait fails immediately.
  bool oneThread = true;
  /// Returns the name of an instruction for reports.
  std::function<std::string(const Label &)> describe = {};
  /// For tests: returns whether the simulation ignores an ordering.
  std::function<bool(const Label &, Ordering)> ignores = {};
};

struct Operation;
struct Batch;
using SharedOperation = std::shared_ptr<Operation>;
using SharedBatch = std::shared_ptr<Batch>;

/// A movement of bytes, for a message or an all-reduce. It happens after all of
/// `parties` have begun and after the transfer `after` has moved.
struct Transfer {
  struct Party {
    SharedOperation operation;
    /// Whether the end of the operation happens after the beginnings of all
    /// parties.
    bool endsAfterAll;
    /// Whether the operation can end after this transfer.
    bool mayEnd;
  };
  std::vector<Party> parties;
  std::shared_ptr<Transfer> after;
  std::function<void()> move;

  // Only the simulation uses these members.
  uint32_t missing = 0; ///< conditions that are not met
  bool hasMoved = false;
  std::shared_ptr<Transfer> follower; ///< moves after this transfer
};

// Only the simulation uses the members of these two types.

/// A group of operations that can begin at the same time: when all their events
/// have passed and all earlier batches that `follow` names have ended.
struct Batch {
  std::vector<SharedBatch> after;
  std::vector<SharedBatch> followers; ///< batches that begin after this one
  std::vector<SharedOperation> operations;
  /// The number of conditions for the beginning that are not met. The
  /// conditions are: the batches in `after` have ended, the events of the
  /// operations have passed, and `close` was called.
  uint32_t missing = 1;
  uint32_t running = 0; ///< operations that have not ended
  Clock clock;          ///< joins the clocks of its ended operations
};

/// An operation that is posted and not put on a queue: an end of a message, or
/// a member's part of an all-reduce. It can begin when the conditions of its
/// batch are met.
struct Operation {
  enum State { Posted, Begun, Moved, Ended } state = Posted;
  Label label;
  std::vector<Access> accesses;
  Event after;
  SharedBatch batch;
  Stamp stamp;
  /// Until the transfer moves: the operations that happened before the
  /// beginning of this operation. After that: the operations that happened
  /// before its end. The clock does not include this operation's own stamp: the
  /// operation happens before others only after it has ended.
  Clock clock;
  bool isAbandoned = false;
  /// The transfers that wait for the beginning of this operation.
  std::vector<std::shared_ptr<Transfer>> transfers;
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

  /// The host of a rank, if the simulation also decides when hosts continue.
  struct Host {
    std::function<bool()> isReady;
    /// Lets the host execute its next step. Called without a lock, so it may
    /// call the simulation.
    std::function<void()> advance;
  };
  void setHosts(std::vector<Host> hosts);

  /// Executes one step that is possible now: of a host, of a queue, or the
  /// beginning, transfer or end of a posted operation. Returns false if no step
  /// is possible. Throws the exceptions of the step.
  bool step();

  /// Whether the queues of a rank are empty.
  bool isIdle(uint32_t rank) const;
  /// The operations that have not ended, one line each: the current operation
  /// of each queue, and posted operations.
  std::string unfinished() const;
  /// The violations, one line each, without duplicates; at most 100.
  std::vector<std::string> violations() const;

  uint64_t steps() const { return taken; }
  /// A hash of the order of all steps.
  uint64_t order() const { return digest; }

  // Functions for channels.

  /// Posts an operation of `rank` that uses memory of its device. `what` names
  /// the operation in reports and must be a string literal. The operation can
  /// begin when `event` has passed and the other conditions of `batch` are met.
  SharedOperation post(uint32_t rank, const char *what,
                       std::vector<Access> accesses, Event event,
                       const SharedBatch &batch);
  SharedBatch makeBatch();
  /// Makes `batch` begin after `before` has ended. Does nothing if `before` is
  /// null or the same batch.
  void follow(const SharedBatch &batch, const SharedBatch &before);
  /// Declares that the batch is complete. Only after this it may begin.
  void close(const SharedBatch &batch);
  void add(std::shared_ptr<Transfer> transfer);
  /// Gives up an operation for which no queue will wait. From now on it uses no
  /// memory.
  void abandon(const SharedOperation &operation);
  /// Puts a wait for the end of `operation` on `queue`.
  void putWait(Queue &queue, SharedOperation operation);
  /// The address at which the simulation stores `bytes` of the device of
  /// `rank`, for Transfer::move.
  std::byte *find(uint32_t rank, ConstBytes bytes);
  /// Makes all waits of hosts throw a WaitError.
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
  std::vector<std::unique_ptr<QueueState>> queues; ///< null if destroyed
  std::set<SharedOperation> operations;            ///< that have not ended
  // The steps that the simulation may choose next: operations that may begin
  // or end, and transfers that may move their bytes. The lists may also have
  // abandoned operations and their transfers, which are never chosen.
  std::vector<SharedOperation> canBegin, canEnd;
  std::vector<std::shared_ptr<Transfer>> canMove;
  std::vector<Host> hosts;
  /// The weights of the kinds of steps in the random choice, by rank.
  enum Kind { HostStep, QueueStep, Begin, Move, End, kKinds };
  std::vector<std::array<uint32_t, kKinds>> weights;
  std::vector<uint64_t> epochs; ///< the last epoch of each thread (Clock.h)
  std::vector<uint32_t> spare;  ///< threads that new operations can reuse
  std::vector<std::string> found;
  std::optional<std::string> abortReason;
  uint64_t taken = 0, digest = 0;
};

// The following types are private.

/// An operation of a queue: work, or a wait.
struct Simulation::Item {
  Label label;
  std::vector<Access> accesses = {};
  std::function<void(const AddressMap &)> work = {};
  std::optional<Event> event = {}; ///< if set: a wait for this event
  SharedOperation operation = {};  ///< if set: a wait for this operation
};

struct Simulation::QueueState {
  uint32_t rank;
  std::string name;
  uint32_t number;
  uint32_t thread;
  std::deque<Item> items;
  uint64_t put = 0, done = 0; ///< items put on the queue, and executed
  Clock clock;
  /// The clocks of recorded events that have not passed, by Event::position.
  std::map<uint64_t, std::shared_ptr<Clock>> recorded;
  /// Batches that wait until `done` reaches the position of an event, by this
  /// position.
  std::multimap<uint64_t, SharedBatch> awaited;
};

/// The device of a rank, for the rank's host.
class Simulation::SimulatedDevice final : public Device {
public:
  SimulatedDevice(Simulation &simulation, uint32_t rank)
      : simulation(simulation), memory(rank) {
    now.rank = rank;
  }

  bool isSynchronous() const override { return false; }
  Block allocate(uint64_t bytes, uint64_t alignment) override;
  void free(std::byte *address) noexcept override;
  std::unique_ptr<Queue> makeQueue(const std::string &name) override;
  bool isDone(Event event) override;
  void waitFor(Event event, std::chrono::milliseconds timeout) override;
  uint64_t blockingWaitCount() const override { return blockingWaits; }
  HostBytes readBack(ConstBytes bytes, Event event,
                     std::chrono::milliseconds timeout) override;
  void setInstruction(uint64_t step, uint32_t instruction) override {
    now.step = step;
    now.instruction = instruction;
  }

  /// A label for the operation that the host now puts on a queue or posts.
  Label label(const char *what) const {
    Label label = now;
    label.what = what;
    return label;
  }

  Simulation &simulation;
  Memory memory;

private:
  Label now;
  uint64_t blockingWaits = 0;
};

} // namespace chimera::runtime::simulated

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_SIMULATION_H
