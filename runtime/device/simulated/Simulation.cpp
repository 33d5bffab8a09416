//===- Simulation.cpp - Devices as unforgiving as GPUs --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/simulated/Simulation.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::simulated;

namespace {
/// The address map of an operation. Throws if the operation has not declared
/// the bytes.
class DeclaredBytes final : public AddressMap {
public:
  DeclaredBytes(Memory &memory, std::span<const Access> accesses)
      : memory(memory), accesses(accesses) {}

private:
  const std::byte *find(ConstBytes bytes) const override {
    if (bytes.empty())
      return nullptr;
    for (const Access &access : accesses)
      if (bytes.data() >= access.bytes.data() &&
          bytes.data() + bytes.size() <=
              access.bytes.data() + access.bytes.size())
        return memory.find(bytes);
    throw std::logic_error("uses bytes that it has not declared");
  }

  Memory &memory;
  std::span<const Access> accesses;
};

/// A copy of the bytes that an operation has declared as only read.
std::vector<std::byte> readOnly(Memory &memory,
                                std::span<const Access> accesses) {
  std::vector<std::byte> all;
  for (const Access &access : accesses)
    if (access.kind == Access::Reads && !access.bytes.empty()) {
      const std::byte *bytes = memory.find(access.bytes);
      all.insert(all.end(), bytes, bytes + access.bytes.size());
    }
  return all;
}
} // namespace

Simulation::Simulation(const Options &options)
    : options(options), random(options.seed) {
  constexpr uint32_t kWeights[] = {1, 8, 64};
  bool isEven = random.oneIn(4);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    devices.push_back(std::make_unique<SimulatedDevice>(*this, rank));
    for (uint32_t &weight : weights.emplace_back())
      weight = isEven ? 1 : kWeights[random.below(std::size(kWeights))];
  }
}

Simulation::~Simulation() {
  // Operations and batches have shared pointers to each other. Break these
  // cycles.
  for (const SharedOperation &operation : operations) {
    operation->transfers.clear();
    operation->batch->operations.clear();
    operation->batch->followers.clear();
  }
}

Device &Simulation::device(uint32_t rank) { return *devices.at(rank); }

void Simulation::setHosts(std::vector<Host> all) {
  std::lock_guard lock(mutex);
  hosts = std::move(all);
}

bool Simulation::hasPassed(const Event &event) const {
  if (event.queue == 0)
    return true;
  const auto &queue = queues[event.queue - 1];
  return !queue || queue->done >= event.position;
}

const Clock &Simulation::clockAt(const Event &event) {
  static const Clock none;
  return event.handle ? *static_cast<const Clock *>(event.handle.get()) : none;
}

bool Simulation::canExecute(const QueueState &queue) const {
  if (queue.items.empty())
    return false;
  const Item &item = queue.items.front();
  if (item.event)
    return hasPassed(*item.event) || ignores(item.label, Ordering::Wait);
  if (item.operation)
    return item.operation->state == Operation::Ended ||
           ignores(item.label, Ordering::Wait);
  return true;
}

void Simulation::execute(QueueState &queue) {
  Item item = std::move(queue.items.front());
  queue.items.pop_front();
  Memory &memory = devices[queue.rank]->memory;
  if ((item.event || item.operation) && !ignores(item.label, Ordering::Wait)) {
    if (item.event) {
      queue.clock.learn(clockAt(*item.event));
    } else {
      queue.clock.learn(item.operation->clock);
      queue.clock.learn(item.operation->stamp);
    }
  } else if (item.work) {
    Stamp stamp{queue.thread, ++epochs[queue.thread]};
    queue.clock.learn(stamp);
    std::vector<Violation> violations;
    try {
      for (const Access &access : item.accesses)
        memory.recordUse(access, stamp, queue.clock, item.label, violations);
      note(violations);
      std::vector<std::byte> before = readOnly(memory, item.accesses);
      item.work(DeclaredBytes(memory, item.accesses));
      if (before != readOnly(memory, item.accesses))
        throw std::logic_error("writes to memory that it said it only reads");
    } catch (const std::logic_error &error) {
      throw std::logic_error(nameOf(item.label) + ": " + error.what());
    }
  }
  ++queue.done;
  for (auto first = queue.awaited.begin();
       first != queue.awaited.end() && first->first <= queue.done;
       first = queue.awaited.erase(first))
    release(*first->second);
  if (auto event = queue.recorded.find(queue.done);
      event != queue.recorded.end()) {
    *event->second = queue.clock;
    queue.recorded.erase(event);
  }
}

/// Called when one of the conditions of a batch is met.
void Simulation::release(Batch &batch) {
  if (--batch.missing == 0)
    canBegin.insert(canBegin.end(), batch.operations.begin(),
                    batch.operations.end());
}

void Simulation::release(const std::shared_ptr<Transfer> &transfer) {
  if (--transfer->missing == 0)
    canMove.push_back(transfer);
}

/// Chooses a thread for a new operation whose clock is `clock`: a spare one, or
/// else a new one. The last operation of a spare thread must have happened
/// before the new operation. Then a clock that includes the new operation
/// includes the old operation, too.
uint32_t Simulation::threadFor(const Clock &clock) {
  for (size_t i = 0; i < spare.size(); ++i)
    if (clock.knows({spare[i], epochs[spare[i]]})) {
      uint32_t thread = spare[i];
      spare[i] = spare.back();
      spare.pop_back();
      return thread;
    }
  epochs.push_back(0);
  return static_cast<uint32_t>(epochs.size() - 1);
}

void Simulation::begin(Operation &operation) {
  const Batch &batch = *operation.batch;
  Clock &clock = operation.clock;
  for (const SharedOperation &member : batch.operations)
    if (!ignores(member->label, Ordering::After))
      clock.learn(clockAt(member->after));
  for (const SharedBatch &before : batch.after)
    clock.learn(before->clock);
  uint32_t thread = threadFor(clock);
  operation.stamp = {thread, ++epochs[thread]};
  spare.push_back(thread);
  Memory &memory = devices[operation.label.rank]->memory;
  std::vector<Violation> violations;
  for (const Access &access : operation.accesses)
    memory.recordUse(access, operation.stamp, clock, operation.label,
                     violations);
  note(violations);
  // An all-reduce reads its contributions until it moves, and its sum may be
  // one of them. So only receives poison their memory.
  bool reads =
      std::ranges::any_of(operation.accesses, [](const Access &access) {
        return access.kind != Access::Writes;
      });
  for (const Access &access : operation.accesses)
    if (access.kind == Access::Writes && !reads)
      memory.poison(
          {const_cast<std::byte *>(access.bytes.data()), access.bytes.size()});
  operation.state = Operation::Begun;
  for (const auto &transfer : std::exchange(operation.transfers, {}))
    release(transfer);
}

void Simulation::move(Transfer &transfer) {
  transfer.move();
  transfer.hasMoved = true;
  if (transfer.follower)
    release(std::exchange(transfer.follower, nullptr));
  Clock all;
  for (const Transfer::Party &party : transfer.parties)
    all.learn(party.operation->clock);
  for (const Transfer::Party &party : transfer.parties) {
    Operation &operation = *party.operation;
    if (party.endsAfterAll)
      operation.clock.learn(all);
    if (!party.mayEnd)
      continue;
    operation.state = Operation::Moved;
    canEnd.push_back(party.operation);
    for (const Access &access : operation.accesses)
      if (access.kind != Access::Reads)
        devices[operation.label.rank]->memory.setWritten(access.bytes);
  }
}

void Simulation::end(Operation &operation) {
  operation.state = Operation::Ended;
  Batch &batch = *operation.batch;
  batch.clock.learn(operation.clock);
  batch.clock.learn(operation.stamp);
  if (--batch.running > 0)
    return;
  batch.after.clear();
  batch.operations.clear();
  for (const SharedBatch &follower : std::exchange(batch.followers, {}))
    release(*follower);
}

bool Simulation::step() {
  std::unique_lock lock(mutex);
  return stepLocked(lock, true);
}

bool Simulation::stepLocked(std::unique_lock<std::recursive_mutex> &lock,
                            bool withHosts) {
  struct Choice {
    Kind kind;
    size_t index;
    uint32_t weight;
  };
  std::vector<Choice> choices;
  uint64_t total = 0;
  auto offer = [&](Kind kind, uint32_t rank, size_t index) {
    choices.push_back({kind, index, weights[rank][kind]});
    total += choices.back().weight;
  };
  for (size_t i = 0; withHosts && i < hosts.size(); ++i)
    if (hosts[i].isReady())
      offer(HostStep, static_cast<uint32_t>(i), i);
  for (size_t i = 0; i < queues.size(); ++i)
    if (queues[i] && canExecute(*queues[i]))
      offer(QueueStep, queues[i]->rank, i);
  for (size_t i = 0; i < canBegin.size(); ++i)
    if (!canBegin[i]->isAbandoned)
      offer(Begin, canBegin[i]->label.rank, i);
  for (size_t i = 0; i < canMove.size(); ++i)
    if (std::ranges::none_of(canMove[i]->parties, [](const auto &party) {
          return party.operation->isAbandoned;
        }))
      offer(Move, canMove[i]->parties.back().operation->label.rank, i);
  for (size_t i = 0; i < canEnd.size(); ++i)
    offer(End, canEnd[i]->label.rank, i);
  if (choices.empty())
    return false;

  uint64_t at = random.below(total);
  const Choice *chosen = choices.data();
  for (; at >= chosen->weight; ++chosen)
    at -= chosen->weight;
  size_t index = chosen->index;
  ++taken;
  digest = (digest ^ (index * kKinds + chosen->kind)) * 0x9E3779B97F4A7C15;
  auto take = [index](auto &list) {
    auto taken = std::move(list[index]);
    list[index] = std::move(list.back());
    list.pop_back();
    return taken;
  };
  switch (chosen->kind) {
  case HostStep:
    lock.unlock();
    hosts[index].advance();
    lock.lock();
    break;
  case QueueStep:
    execute(*queues[index]);
    break;
  case Begin:
    begin(*take(canBegin));
    break;
  case Move:
    move(*take(canMove));
    break;
  case End: {
    SharedOperation ended = take(canEnd);
    end(*ended);
    operations.erase(ended);
    break;
  }
  case kKinds:
    break;
  }
  changed.notify_all();
  return true;
}

void Simulation::waitFor(Event event, std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLook(20);
  std::unique_lock lock(mutex);
  Deadline deadline(timeout);
  while (!hasPassed(event)) {
    if (abortReason)
      throw WaitError(WaitError::Reason::Aborted, "aborted: " + *abortReason);
    if (stepLocked(lock, false))
      continue;
    if (options.oneThread)
      throw std::runtime_error("no rank can advance:\n" + unfinished());
    changed.wait_for(lock, kLook);
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut,
                      timeoutMessage(timeout, "the device:\n" + unfinished()));
  }
}

SharedBatch Simulation::makeBatch() { return std::make_shared<Batch>(); }

void Simulation::follow(const SharedBatch &batch, const SharedBatch &before) {
  std::lock_guard lock(mutex);
  if (!before || before == batch || std::ranges::count(batch->after, before))
    return;
  batch->after.push_back(before);
  if (before->missing == 0 && before->running == 0)
    return;
  before->followers.push_back(batch);
  ++batch->missing;
}

void Simulation::close(const SharedBatch &batch) {
  std::lock_guard lock(mutex);
  release(*batch);
  changed.notify_all();
}

SharedOperation Simulation::post(uint32_t rank, const char *what,
                                 std::vector<Access> accesses, Event event,
                                 const SharedBatch &batch) {
  std::lock_guard lock(mutex);
  auto operation = std::make_shared<Operation>();
  operation->label = devices[rank]->label(what);
  operation->accesses = std::move(accesses);
  operation->after = event;
  operation->batch = batch;
  batch->operations.push_back(operation);
  ++batch->running;
  operations.insert(operation);
  if (!hasPassed(event) && !ignores(operation->label, Ordering::After)) {
    queues[event.queue - 1]->awaited.emplace(event.position, batch);
    ++batch->missing;
  }
  return operation;
}

void Simulation::add(std::shared_ptr<Transfer> transfer) {
  std::lock_guard lock(mutex);
  transfer->missing = 1;
  for (const Transfer::Party &party : transfer->parties)
    if (party.operation->state == Operation::Posted) {
      party.operation->transfers.push_back(transfer);
      ++transfer->missing;
    }
  if (transfer->after && !transfer->after->hasMoved) {
    transfer->after->follower = transfer;
    ++transfer->missing;
  }
  transfer->after.reset();
  release(transfer);
  changed.notify_all();
}

void Simulation::abandon(const SharedOperation &operation) {
  std::lock_guard lock(mutex);
  operation->isAbandoned = true;
}

std::byte *Simulation::find(uint32_t rank, ConstBytes bytes) {
  std::lock_guard lock(mutex);
  return bytes.empty() ? nullptr : devices[rank]->memory.find(bytes);
}

void Simulation::abort(const std::string &reason) {
  std::lock_guard lock(mutex);
  if (!abortReason)
    abortReason = reason;
  changed.notify_all();
}

std::string Simulation::nameOf(const Label &label) const {
  std::string name = std::string(label.what) + " of " +
                     (options.describe ? options.describe(label)
                                       : "rank " + std::to_string(label.rank) +
                                             " instruction " +
                                             std::to_string(label.instruction));
  return name + " in step " + std::to_string(label.step);
}

void Simulation::note(const std::vector<Violation> &violations) {
  constexpr size_t kMost = 100;
  for (const Violation &violation : violations) {
    auto verb = [](bool writes) { return writes ? " writes" : " reads"; };
    std::string text = nameOf(violation.label) +
                       verb(violation.kind != Access::Reads) + " " +
                       std::to_string(violation.bytes) + " bytes that ";
    text += violation.hasOther
                ? nameOf(violation.other) + verb(violation.otherWrites) +
                      ", and no event orders the two"
                : "nothing has written";
    if (found.size() < kMost && !std::ranges::count(found, text))
      found.push_back(std::move(text));
  }
}

std::vector<std::string> Simulation::violations() const {
  std::lock_guard lock(mutex);
  return found;
}

bool Simulation::isIdle(uint32_t rank) const {
  std::lock_guard lock(mutex);
  return std::ranges::all_of(queues, [rank](const auto &queue) {
    return !queue || queue->rank != rank || queue->items.empty();
  });
}

std::string Simulation::unfinished() const {
  std::lock_guard lock(mutex);
  std::string lines;
  for (const auto &queue : queues)
    if (queue && !queue->items.empty())
      lines += "  rank " + std::to_string(queue->rank) + ", queue " +
               queue->name + ": at " + nameOf(queue->items.front().label) +
               "\n";
  std::vector<const Operation *> open;
  for (const SharedOperation &operation : operations)
    open.push_back(operation.get());
  std::ranges::sort(open, {}, [](const Operation *operation) {
    const Label &label = operation->label;
    return std::tuple(label.rank, label.step, label.instruction);
  });
  for (const Operation *operation : open)
    lines += "  rank " + std::to_string(operation->label.rank) + ": " +
             nameOf(operation->label) +
             (operation->state == Operation::Posted ? " has not begun"
                                                    : " has not ended") +
             "\n";
  return lines;
}
