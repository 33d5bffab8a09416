//===- InProcess.cpp - Ranks as threads of one process --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/InProcess.h"

#include "runtime/channel/Hub.h"
#include "runtime/device/Fold.h"

#include <algorithm>
#include <cstring>

using namespace chimera::runtime;

namespace {
struct InProcessMessage final : local::Message {
  InProcessMessage(local::MessageQueue &queue, Bytes bytes, Block *memory,
                   bool isSend, uint32_t peer)
      : local::Message(queue, bytes, isSend, peer), memory(memory) {}
  ~InProcessMessage() override { withdraw(); }

  /// Moves the bytes between this end and `other`, by copying or by exchanging
  /// the blocks.
  void moveWith(InProcessMessage &other) {
    if (memory && other.memory)
      memory->swap(*other.memory);
    else if (size() && isSend())
      std::memcpy(other.bytes.data(), bytes.data(), size());
    else if (size())
      std::memcpy(bytes.data(), other.bytes.data(), size());
  }

private:
  Block *memory; ///< the block of the bytes if it may be exchanged, else null
};

/// An all-reduce between threads. A thread takes one chunk at a time. It folds
/// this chunk of all contributions into the sum of the first member, and then
/// copies the result to the other sums. No thread reads this chunk of a
/// contribution after the copies, so sums may also be contributions.
struct InProcessReduction final : local::Reduction {
  static constexpr uint64_t kChunk = 64 * 1024;

  uint64_t chunks = 0;

  std::atomic<bool> ready{false};
  std::atomic<bool> cancelled{false};
  std::atomic<uint64_t> claimed{0};
  std::atomic<uint64_t> folded{0};
  std::atomic<uint32_t> folding{0};

  bool done() const {
    return ready.load(std::memory_order_acquire) &&
           folded.load(std::memory_order_acquire) == chunks;
  }

  /// Folds one chunk that no thread has taken. Sets `found` to false if there
  /// is no such chunk. Returns true if all chunks are complete after this fold.
  bool foldOne(bool &found) {
    found = false;
    folding.fetch_add(1);
    bool last = false;
    if (!cancelled.load()) {
      uint64_t chunk = claimed.fetch_add(1);
      if (chunk < chunks) {
        found = true;
        uint64_t at = chunk * kChunk;
        uint64_t size = std::min(kChunk, bytes - at);
        std::vector<const std::byte *> sources(contributions);
        for (const std::byte *&source : sources)
          source += at;
        fold(type, sources, sums[0] + at, size);
        for (size_t i = 1; i < sums.size(); ++i)
          std::memcpy(sums[i] + at, sums[0] + at, size);
        last = folded.fetch_add(1) + 1 == chunks;
      }
    }
    folding.fetch_sub(1);
    return last;
  }
};

struct ReductionRequest final : Request {
  std::shared_ptr<InProcessReduction> reduction;
  uint32_t group = 0;
  ~ReductionRequest() override {
    if (reduction->done())
      return;
    reduction->cancelled.store(true);
    while (reduction->folding.load() != 0)
      sched_yield();
  }
};

class InProcess final : public Channels {
public:
  InProcess(std::shared_ptr<local::Hub> hub, uint32_t self)
      : hub(std::move(hub)), self(self) {}

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return hub->ranks; }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    return post(to, {const_cast<std::byte *>(bytes.data()), bytes.size()},
                nullptr, true);
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    return post(from, bytes, nullptr, false);
  }
  std::unique_ptr<Request> postSendBlock(uint32_t to, Block &memory,
                                         uint64_t size, Event) override {
    return post(to, {memory.get(), size}, &memory, true);
  }
  std::unique_ptr<Request> postReceiveBlock(uint32_t from, Block &memory,
                                            uint64_t size, Event) override {
    return post(from, {memory.get(), size}, &memory, false);
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event) override;

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override;

  void abort(const std::string &reason) override { hub->abort(reason); }

private:
  std::unique_ptr<Request> post(uint32_t peer, Bytes bytes, Block *memory,
                                bool isSend) {
    auto message = std::make_unique<InProcessMessage>(
        hub->queue(self, peer, isSend), bytes, memory, isSend, peer);
    hub->post(*message,
              [&](InProcessMessage &other) { message->moveWith(other); });
    return message;
  }

  std::shared_ptr<local::Hub> hub;
  uint32_t self;
  std::map<uint32_t, uint64_t> startedOfGroup;
};
} // namespace

std::unique_ptr<Request>
InProcess::startAllReduce(const ReduceGroup &group, ElementType type,
                          std::vector<ConstBytes> given, Bytes sum, Event) {
  checkAllReduce(group, self, type, given, sum);
  bool isComplete = false;
  std::shared_ptr<InProcessReduction> reduction =
      hub->start<InProcessReduction>(
          group, startedOfGroup[group.id]++, self, type, given, sum,
          [&](InProcessReduction &joined, size_t, bool isLast) {
            isComplete = isLast;
            if (!isLast)
              return;
            joined.chunks = (joined.bytes + InProcessReduction::kChunk - 1) /
                            InProcessReduction::kChunk;
            joined.ready.store(true, std::memory_order_release);
          });
  if (isComplete)
    hub->notifyOthers(reduction->members, self);
  auto request = std::make_unique<ReductionRequest>();
  request->reduction = std::move(reduction);
  request->group = group.id;
  return request;
}

void InProcess::wait(Queue &, std::unique_ptr<Request> request,
                     std::chrono::milliseconds timeout) {
  hub->throwIfAborted();
  if (auto *message = dynamic_cast<InProcessMessage *>(request.get())) {
    hub->waitUntil(
        self, [&] { return message->hasEnded(); }, timeout,
        [&] { return message->awaited(); });
    return message->expectEqualSizes();
  }
  auto &reduction = *dynamic_cast<ReductionRequest &>(*request).reduction;
  uint32_t group = static_cast<ReductionRequest &>(*request).group;
  hub->waitUntil(
      self,
      [&] {
        if (!reduction.ready.load(std::memory_order_acquire))
          return false;
        bool found = true;
        while (found)
          if (reduction.foldOne(found))
            hub->notifyOthers(reduction.members, self);
        return reduction.done();
      },
      timeout,
      [&] { return "the all-reduce of group " + std::to_string(group); });
}

std::vector<std::unique_ptr<Channels>>
chimera::runtime::makeInProcessChannels(uint32_t ranks) {
  auto hub = std::make_shared<local::Hub>(ranks);
  std::vector<std::unique_ptr<Channels>> channels;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    channels.push_back(std::make_unique<InProcess>(hub, rank));
  return channels;
}
