//===- Copies.cpp - Channels between GPUs of one process ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/cuda/Copies.h"

#include "runtime/channel/StreamKey.h"

#include <algorithm>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using cuda::CudaDevice;
using cuda::CudaQueue;

namespace {
/// A stream of a rank. Only that rank's thread enqueues operations on it.
struct Stream {
  std::unique_ptr<CudaQueue> queue;
  Block scratch = {}; ///< for copies of contributions on other GPUs
  uint64_t scratchBytes = 0;

  /// Called if an operation is on a stream (perhaps of another rank) and no
  /// queue of this rank will wait for it. The operation still uses this rank's
  /// memory. So this function marks the device as failed, which keeps the
  /// memory until the device is destroyed. It also makes this stream wait for
  /// the operation.
  void giveUp(CudaDevice &device, const Event &done) const noexcept {
    device.fail(std::make_exception_ptr(
        std::runtime_error("an operation was given up before its end")));
    try {
      device.wait(queue->stream(), done);
    } catch (const std::exception &) {
      // The GPU reports an error, so it executes no operation any more.
    }
  }
};

/// One end of a message: its send or its receive.
class Message final : public local::Message {
public:
  Message(local::MessageQueue &queue, Bytes bytes, bool isSend, uint32_t peer,
          Event after, CudaDevice &device, const Stream &stream)
      : local::Message(queue, bytes, isSend, peer), device(device),
        stream(stream), after(std::move(after)) {}
  ~Message() override {
    if (withdraw() && done.handle)
      stream.giveUp(device, done);
  }

  /// Enqueues the copy between this end and `other` on this end's stream.
  void moveWith(Message &other) {
    CudaQueue &queue = *stream.queue;
    queue.wait(after);
    queue.wait(other.after);
    if (isSend())
      queue.copy(bytes, other.bytes);
    else
      queue.copy(other.bytes, bytes);
    done = other.done = queue.record();
  }

  /// Makes `queue` wait for the copy. Requires that the message has ended.
  void order(Queue &queue) {
    queue.wait(done);
    done = {};
  }

private:
  CudaDevice &device;
  const Stream &stream;
  Event after;
  Event done; ///< the end of the copy; reset by `order`
};

/// An all-reduce between ranks on GPUs.
struct Sum final : local::Reduction {
  /// The states of an all-reduce. Starting: some member has not started it.
  /// Moving: a rank enqueues it. GivenUp: the rank that enqueued it failed.
  /// This rank reports the error, and the others wait until the run is aborted.
  enum State : uint32_t { Starting, Moving, GivenUp, Done };

  struct Start {
    bool isThere = false;
    Event after = {};
  };
  std::vector<Start> starts; ///< by member; guarded by the hub's mutex
  /// Whether a member dropped its request before the sum began. Guarded by the
  /// hub's mutex.
  bool isDropped = false;
  std::atomic<uint32_t> state{Starting};
  Event done; ///< the end of the whole all-reduce

  bool hasEnded() const {
    return state.load(std::memory_order_acquire) == Done;
  }
};

class SumRequest final : public Request {
public:
  SumRequest(std::shared_ptr<local::Hub> hub, std::shared_ptr<Sum> sum,
             CudaDevice &device, const Stream &stream)
      : sum(std::move(sum)), hub(std::move(hub)), device(device),
        stream(stream) {}
  ~SumRequest() override {
    if (isOrdered)
      return;
    {
      std::lock_guard lock(hub->mutex);
      sum->isDropped = true; // has no effect if the sum has begun
    }
    while (sum->state.load(std::memory_order_acquire) == Sum::Moving)
      sched_yield();
    if (sum->hasEnded())
      stream.giveUp(device, sum->done);
  }

  /// Makes `queue` wait for the all-reduce. Requires that it has ended.
  void order(Queue &queue) {
    queue.wait(sum->done);
    isOrdered = true;
  }

  const std::shared_ptr<Sum> sum;

private:
  const std::shared_ptr<local::Hub> hub;
  CudaDevice &device;
  const Stream &stream;
  bool isOrdered = false;
};

class CopyChannels final : public Channels {
public:
  CopyChannels(std::shared_ptr<local::Hub> hub, uint32_t self,
               CudaDevice &device, CopyOptions given)
      : hub(std::move(hub)), self(self), device(device),
        options(std::move(given)) {
    if (options.gpus.size() != this->hub->ranks)
      throw std::invalid_argument("expected " +
                                  std::to_string(this->hub->ranks) +
                                  " GPU numbers, one for each rank, got " +
                                  std::to_string(options.gpus.size()));
  }

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return hub->ranks; }

  void prepare(const Communication &communication) override {
    model = communication.model;
    device.makeCurrent();
    for (const Communication::Pair &pair : communication.pairs)
      if (pair.from == self || pair.to == self)
        prepareStream(streamKey(model, pair.from, pair.to));
    for (const ReduceGroup &group : communication.groups) {
      const std::vector<uint32_t> members = membersOf(group);
      if (!std::ranges::binary_search(members, self))
        continue;
      Stream &stream = prepareStream(streamKey(model, members));
      const auto far = static_cast<uint64_t>(
          std::ranges::count_if(group.contributors, [&](uint32_t contributor) {
            return isFar(contributor);
          }));
      const uint64_t wanted =
          far ? std::max(options.scratchBytes, far * kPiece) : 0;
      if (wanted > stream.scratchBytes) {
        stream.scratch = device.allocate(wanted);
        stream.scratchBytes = wanted;
      }
    }
  }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event after) override {
    return post(true, to, {const_cast<std::byte *>(bytes.data()), bytes.size()},
                std::move(after));
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event after) override {
    return post(false, from, bytes, std::move(after));
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes result, Event after) override {
    checkAllReduce(group, self, type, given, result);
    device.expectNoFailure();
    const Stream &stream = streamOf(streamKey(model, membersOf(group)));
    size_t own = 0;
    bool isMine = false;
    std::shared_ptr<Sum> sum = hub->start<Sum>(
        group, startedOfGroup[group.id]++, self, type, given, result,
        [&](Sum &joined, size_t memberIndex, bool isLast) {
          own = memberIndex;
          joined.starts.resize(joined.members.size());
          joined.starts[memberIndex] = {true, std::move(after)};
          isMine = isLast && !joined.isDropped;
          if (isMine)
            joined.state.store(Sum::Moving, std::memory_order_relaxed);
        });
    if (isMine) {
      try {
        sum->done = add(*stream.queue, stream, *sum, own);
      } catch (...) {
        sum->state.store(Sum::GivenUp, std::memory_order_release);
        throw;
      }
      sum->state.store(Sum::Done, std::memory_order_release);
      hub->notifyOthers(sum->members, self);
    }
    return std::make_unique<SumRequest>(hub, std::move(sum), device, stream);
  }

  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    hub->throwIfAborted();
    if (auto *message = dynamic_cast<Message *>(request.get())) {
      hub->waitUntil(
          self, [&] { return message->hasEnded(); }, timeout,
          [&] { return message->awaited(); });
      message->expectEqualSizes();
      return message->order(queue);
    }
    auto &reducing = dynamic_cast<SumRequest &>(*request);
    hub->waitUntil(
        self, [&] { return reducing.sum->hasEnded(); }, timeout,
        [&] { return awaited(*reducing.sum); });
    reducing.order(queue);
  }

  void abort(const std::string &reason) override {
    device.fail(std::make_exception_ptr(
        WaitError(WaitError::Reason::Aborted, "aborted: " + reason)));
    hub->abort(reason);
  }

private:
  /// If contributions are on several GPUs, the sum is computed in pieces. The
  /// size of a piece in bytes is a multiple of this.
  static constexpr uint64_t kPiece = 256;

  Stream &prepareStream(const StreamKey &key) {
    Stream &stream = streams[key];
    if (!stream.queue)
      stream.queue = std::make_unique<CudaQueue>(device);
    return stream;
  }

  const Stream &streamOf(const StreamKey &key) const {
    auto stream = streams.find(key);
    if (stream == streams.end())
      throw std::logic_error(
          "expected a peer or group that was passed to prepare");
    return stream->second;
  }

  /// Whether a kernel on this rank's GPU may be unable to read memory of
  /// `rank`, because this memory is on another GPU.
  bool isFar(uint32_t rank) const {
    return !device.worksOnHost() && options.gpus[rank] != options.gpus[self];
  }

  std::unique_ptr<Request> post(bool isSend, uint32_t peer, Bytes bytes,
                                Event after) {
    local::MessageQueue &queue = hub->queue(self, peer, isSend);
    device.expectNoFailure();
    auto message = std::make_unique<Message>(
        queue, bytes, isSend, peer, std::move(after), device,
        streamOf(isSend ? streamKey(model, self, peer)
                        : streamKey(model, peer, self)));
    hub->post(*message, [&](Message &other) { message->moveWith(other); });
    return message;
  }

  /// Enqueues the fold into the sum of this rank, which is member `own`, and
  /// then the copies to the sums of the other members. The copies are last
  /// because a sum may also be a contribution: all contributions have been read
  /// by then.
  Event add(CudaQueue &queue, const Stream &stream, Sum &sum,
            size_t own) const {
    for (const Sum::Start &start : sum.starts)
      queue.wait(start.after);
    const Bytes result(sum.sums[own], sum.bytes);
    const auto far = static_cast<uint64_t>(
        std::ranges::count_if(sum.contributors, [&](uint32_t contributor) {
          return isFar(contributor);
        }));
    const uint64_t most =
        far ? stream.scratchBytes / far / kPiece * kPiece : sum.bytes;
    for (uint64_t begin = 0; begin < sum.bytes; begin += most) {
      const uint64_t size = std::min(most, sum.bytes - begin);
      std::vector<ConstBytes> summands;
      std::byte *next = stream.scratch.get();
      for (size_t i = 0; i < sum.contributors.size(); ++i) {
        ConstBytes summand(sum.contributions[i] + begin, size);
        if (isFar(sum.contributors[i])) {
          queue.copy(summand, {next, size});
          summand = {next, size};
          next += most;
        }
        summands.push_back(summand);
      }
      queue.fold(sum.type, std::move(summands), result.subspan(begin, size));
    }
    for (size_t memberIndex = 0; memberIndex < sum.members.size();
         ++memberIndex)
      if (memberIndex != own)
        queue.copy(result, {sum.sums[memberIndex], sum.bytes});
    return queue.record();
  }

  /// The text after "timed out waiting for": "ranks 1, 2 to start an
  /// all-reduce".
  std::string awaited(const Sum &sum) const {
    std::lock_guard lock(hub->mutex);
    std::string missing;
    uint32_t count = 0;
    for (size_t memberIndex = 0; memberIndex < sum.members.size();
         ++memberIndex)
      if (!sum.starts[memberIndex].isThere) {
        missing +=
            (count++ ? ", " : "") + std::to_string(sum.members[memberIndex]);
      }
    return (count == 0   ? "the other ranks to start"
            : count == 1 ? "rank " + missing + " to start"
                         : "ranks " + missing + " to start") +
           std::string(" an all-reduce");
  }

  const std::shared_ptr<local::Hub> hub;
  const uint32_t self;
  CudaDevice &device;
  const CopyOptions options;
  program::MessageModel model = program::MessageModel::StreamPerDevice;
  std::map<StreamKey, Stream> streams;
  std::map<uint32_t, uint64_t> startedOfGroup;
};
} // namespace

std::unique_ptr<Channels>
chimera::runtime::makeCopyChannels(std::shared_ptr<local::Hub> hub,
                                   uint32_t rank, CudaDevice &device,
                                   CopyOptions options) {
  return std::make_unique<CopyChannels>(std::move(hub), rank, device,
                                        std::move(options));
}
