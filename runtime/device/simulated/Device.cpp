//===- Device.cpp - The interface of a simulated device -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Fold.h"
#include "runtime/device/simulated/Simulation.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;
using namespace chimera::runtime::simulated;

class Simulation::SimulatedQueue final : public Queue {
public:
  SimulatedQueue(Simulation &simulation, QueueState &state)
      : simulation(simulation), state(state) {}
  ~SimulatedQueue() override {
    std::lock_guard lock(simulation.mutex);
    simulation.queues[state.number].reset();
  }

  void launch(std::span<const Access> accesses, Work work) override {
    put("the action", {accesses.begin(), accesses.end()}, std::move(work));
  }
  void zero(Bytes bytes) override {
    put("the zeroing", {writes(bytes)}, [=](const AddressMap &at) {
      std::ranges::fill(at(bytes), std::byte(0));
    });
  }
  void copy(ConstBytes from, Bytes to) override {
    put("the copy", {reads(from), writes(to)}, [=](const AddressMap &at) {
      std::ranges::copy(at(from), at(to).begin());
    });
  }
  void fold(ElementType type, std::vector<ConstBytes> contributions,
            Bytes sum) override {
    std::vector<Access> accesses;
    for (ConstBytes contribution : contributions)
      accesses.push_back(reads(contribution));
    accesses.push_back(writes(sum));
    put("the sum", std::move(accesses),
        [type, contributions = std::move(contributions),
         sum](const AddressMap &at) {
          std::vector<const std::byte *> summands;
          for (ConstBytes contribution : contributions)
            summands.push_back(at(contribution).data());
          chimera::runtime::fold(type, summands, at(sum).data(), sum.size());
        });
  }
  void scale(ElementType type, Bytes bytes, double factor) override {
    put("the scaling", {updates(bytes)},
        [=](const AddressMap &at) { scaleElements(type, at(bytes), factor); });
  }
  void loadFromHost(Bytes to, const std::function<void(Bytes)> &fill) override {
    auto staged = std::make_shared<std::vector<std::byte>>(to.size());
    fill(*staged);
    put("the load", {writes(to)}, [=](const AddressMap &at) {
      std::ranges::copy(*staged, at(to).begin());
    });
  }
  void readBack(ConstBytes from, Bytes host) override {
    // Fill the host memory with garbage first. So a host that reads it before
    // the copy makes a visible error.
    std::ranges::fill(host, std::byte(0xA5));
    put("the copy to the host", {reads(from)}, [=](const AddressMap &at) {
      std::ranges::copy(at(from), host.begin());
    });
  }

  Event record() override {
    std::lock_guard lock(simulation.mutex);
    std::shared_ptr<Clock> clock;
    if (state.done == state.put)
      clock = std::make_shared<Clock>(state.clock);
    else if (std::shared_ptr<Clock> &open = state.recorded[state.put])
      clock = open;
    else
      clock = open = std::make_shared<Clock>();
    // Event::queue is 0 for an event that has always passed, so numbers begin
    // at 1.
    return {state.number + 1, state.put, std::move(clock)};
  }
  void wait(Event event) override {
    Item item{.label = label("the wait for an event")};
    item.event = event;
    put(std::move(item));
  }

  void put(Item item) {
    std::lock_guard lock(simulation.mutex);
    state.items.push_back(std::move(item));
    ++state.put;
    simulation.changed.notify_all();
  }
  Label label(const char *what) const;

private:
  void put(const char *what, std::vector<Access> accesses, Work work) {
    put({.label = label(what),
         .accesses = std::move(accesses),
         .work = std::move(work)});
  }

  Simulation &simulation;
  QueueState &state;
};

Block Simulation::SimulatedDevice::allocate(uint64_t bytes,
                                            uint64_t alignment) {
  std::lock_guard lock(simulation.mutex);
  return Block(memory.allocate(bytes, alignment), FreeMemory{this});
}

void Simulation::SimulatedDevice::free(std::byte *address) noexcept {
  std::lock_guard lock(simulation.mutex);
  memory.free(address);
}

std::unique_ptr<Queue>
Simulation::SimulatedDevice::makeQueue(const std::string &name) {
  std::lock_guard lock(simulation.mutex);
  auto number = static_cast<uint32_t>(simulation.queues.size());
  auto state = std::make_unique<QueueState>();
  state->rank = now.rank;
  state->name = name;
  state->number = number;
  state->thread = static_cast<uint32_t>(simulation.epochs.size());
  simulation.epochs.push_back(0);
  simulation.queues.push_back(std::move(state));
  return std::make_unique<SimulatedQueue>(simulation,
                                          *simulation.queues[number]);
}

bool Simulation::SimulatedDevice::isDone(Event event) {
  std::lock_guard lock(simulation.mutex);
  return simulation.hasPassed(event) ||
         simulation.ignores(label("the host"), Ordering::Host);
}

void Simulation::SimulatedDevice::waitFor(Event event,
                                          std::chrono::milliseconds timeout) {
  if (isDone(event))
    return;
  ++blockingWaits;
  simulation.waitFor(event, timeout);
}

HostBytes
Simulation::SimulatedDevice::readBack(ConstBytes bytes, Event event,
                                      std::chrono::milliseconds timeout) {
  waitFor(event, timeout);
  std::lock_guard lock(simulation.mutex);
  Block copy = makeBlock(bytes.size());
  if (!bytes.empty())
    std::memcpy(copy.get(), memory.find(bytes), bytes.size());
  return {std::move(copy), bytes.size()};
}

Label Simulation::SimulatedQueue::label(const char *what) const {
  return simulation.devices[state.rank]->label(what);
}

void Simulation::putWait(Queue &queue, SharedOperation operation) {
  auto &own = dynamic_cast<SimulatedQueue &>(queue);
  Item item{.label = own.label("the wait")};
  item.operation = std::move(operation);
  own.put(std::move(item));
}
