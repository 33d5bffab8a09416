//===- State.h - The state of a simulation ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_SIMULATED_STATE_H
#define CHIMERA_RUNTIME_DEVICE_SIMULATED_STATE_H

#include "runtime/device/simulated/Simulation.h"

namespace chimera::runtime::simulated {

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

#endif // CHIMERA_RUNTIME_DEVICE_SIMULATED_STATE_H
