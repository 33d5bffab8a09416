//===- Channels.cpp - Channels between GPUs over NCCL ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Channels.h"

#include "runtime/channel/StreamKey.h"
#include "runtime/channel/nccl/Communicators.h"
#include "runtime/channel/nccl/OrderedSum.h"
#include "runtime/device/Fold.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::nccl;
using cuda::CudaDevice;
using cuda::CudaQueue;
using program::MessageModel;

namespace {
/// A communicator and the stream of this rank's operations on it.
struct Stream {
  ncclComm_t communicator;
  std::vector<uint32_t> members;
  std::shared_ptr<CudaQueue> queue;
  Block scratch = {}; ///< for contributions of other ranks

  int indexOf(uint32_t rank) const {
    return static_cast<int>(std::ranges::lower_bound(members, rank) -
                            members.begin());
  }
};

/// The event after an operation. Empty until the operation is enqueued.
using Done = std::shared_ptr<std::optional<Event>>;

struct NcclRequest final : Request {
  explicit NcclRequest(Done done) : done(std::move(done)) {}
  Done done;
};

/// One end of a message: its send or its receive.
struct End {
  Stream *stream;
  bool isSend;
  uint32_t peer;
  Bytes bytes; ///< a send only reads them
  Event after;
  Done done = std::make_shared<std::optional<Event>>();
};

class NcclChannels final : public Channels {
public:
  NcclChannels(CudaDevice &device, Control &control, const NcclOptions &options)
      : device(device), control(control), options(options) {}
  ~NcclChannels() override {
    // After a failure, abort. Otherwise the streams would wait for operations
    // that other ranks may never post.
    if (std::uncaught_exceptions() > 0 || device.failed())
      abort("the rank failed");
  }

  uint32_t rank() const override { return control.rank(); }
  uint32_t ranks() const override { return control.ranks(); }

  void prepare(const Communication &communication) override {
    model = communication.model;
    auto owned =
        std::make_unique<Communicators>(device, control, options.timeout);
    {
      std::lock_guard lock(mutex);
      communicators = std::move(owned);
    }
    local = makeStream();
    if (model == MessageModel::StreamPerDevice) {
      std::vector<uint32_t> all(ranks());
      std::iota(all.begin(), all.end(), 0);
      streams[{}] = {communicators->all(), std::move(all), local};
      streams[{}].scratch = device.allocate(options.scratchBytes);
    }
    // Every split is a collective call of all ranks, so all ranks make all
    // splits in this order.
    for (const Communication::Pair &pair : communication.pairs)
      split(keyOf(pair.from, pair.to),
            {std::min(pair.from, pair.to), std::max(pair.from, pair.to)});
    for (const ReduceGroup &group : communication.groups) {
      std::vector<uint32_t> members = membersOf(group);
      split(keyOf(members), members, true);
    }
    connect(communication);
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
                                          Bytes sum, Event after) override {
    checkAllReduce(group, rank(), type, given, sum);
    device.expectNoFailure();
    if (inGroup)
      throw std::logic_error("expected an all-reduce outside of a group");
    Stream *stream = nullptr;
    std::vector<uint32_t> members = membersOf(group);
    if (members.size() > 1)
      stream = &streamOf(keyOf(members));
    CudaQueue &queue = stream ? *stream->queue : *local;
    queue.wait(after);
    if (!stream)
      queue.fold(type, std::move(given), sum);
    else if (options.transportAllReduce && sum.size() % elementBytes(type) == 0)
      ncclAllReduceSum(*stream, type, given, sum);
    else
      sumInOrder(*stream, group, type, given, sum);
    return std::make_unique<NcclRequest>(
        std::make_shared<std::optional<Event>>(queue.record()));
  }

  void beginGroup() override { inGroup = true; }
  void endGroup() override {
    inGroup = false;
    run(std::exchange(posted, {}));
  }

  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds) override {
    const Done &done = dynamic_cast<NcclRequest &>(*request).done;
    if (!*done)
      throw std::logic_error(
          "expected endGroup before a wait for a message of the group");
    queue.wait(**done);
  }

  void abort(const std::string &reason) override {
    auto error = std::make_exception_ptr(
        WaitError(WaitError::Reason::Aborted, "aborted: " + reason));
    device.fail(error);
    std::lock_guard lock(mutex);
    if (communicators)
      communicators->abort(error);
  }

private:
  using Key = StreamKey;

  Key keyOf(uint32_t from, uint32_t to) const {
    return streamKey(model, from, to);
  }
  Key keyOf(const std::vector<uint32_t> &members) const {
    // ncclAllReduce always sums over all ranks of a communicator, so each group
    // needs its own communicator.
    return streamKey(options.transportAllReduce &&
                             model == MessageModel::StreamPerDevice
                         ? MessageModel::StreamPerPair
                         : model,
                     members);
  }

  std::shared_ptr<CudaQueue> makeStream() {
    return std::make_shared<CudaQueue>(device);
  }

  void split(const Key &key, const std::vector<uint32_t> &members,
             bool sums = false) {
    if (members.size() < 2 || members.front() == members.back() ||
        !seen.insert(key).second || key.empty())
      return;
    ncclComm_t communicator = communicators->split(members);
    if (!communicator)
      return;
    Stream &stream = streams[key];
    stream = {communicator, members,
              model == MessageModel::StreamPerDevice ? local : makeStream()};
    if (sums)
      stream.scratch = device.allocate(options.scratchBytes);
  }

  /// Sends a byte between all ranks that will communicate. When two ranks first
  /// communicate, NCCL connects them and allocates memory. So this occurs here,
  /// and not in a step.
  void connect(const Communication &communication) {
    std::map<Key, std::set<Communication::Pair>> meetings;
    for (const Communication::Pair &pair : communication.pairs)
      meetings[keyOf(pair.from, pair.to)].insert(pair);
    for (const ReduceGroup &group : communication.groups)
      for (uint32_t from : membersOf(group))
        for (uint32_t to : membersOf(group))
          meetings[keyOf(membersOf(group))].insert({from, to});
    Block bytes = device.allocate(1 + ranks());
    for (const auto &[key, pairs] : meetings) {
      if (!streams.contains(key))
        continue;
      Stream &stream = streams[key];
      communicators->callAsGroup({&stream.communicator, 1}, [&] {
        for (const Communication::Pair &pair : pairs)
          if (pair.from == rank() && pair.to != rank())
            send(stream, pair.to, {bytes.get(), 1});
          else if (pair.to == rank() && pair.from != rank())
            receive(stream, pair.from, {bytes.get() + 1 + pair.from, 1});
      });
      device.waitFor(stream.queue->record(), options.timeout);
    }
  }

  Stream &streamOf(const Key &key) {
    auto stream = streams.find(key);
    if (stream == streams.end())
      throw std::logic_error(
          "expected a peer or group that was passed to prepare");
    return stream->second;
  }

  std::unique_ptr<Request> post(bool isSend, uint32_t peer, Bytes bytes,
                                Event after) {
    if (peer >= ranks())
      throw std::invalid_argument("expected a rank below " +
                                  std::to_string(ranks()) + ", got " +
                                  std::to_string(peer));
    device.expectNoFailure();
    if (peer == rank())
      throw std::invalid_argument("expected another rank, got the rank itself");
    End end{&streamOf(isSend ? keyOf(rank(), peer) : keyOf(peer, rank())),
            isSend, peer, bytes, std::move(after)};
    auto request = std::make_unique<NcclRequest>(end.done);
    posted.push_back(std::move(end));
    if (!inGroup)
      run(std::exchange(posted, {}));
    return request;
  }

  /// Enqueues the ends of several messages as one NCCL operation.
  void run(const std::vector<End> &ends) {
    std::vector<ncclComm_t> used;
    for (const End &end : ends) {
      end.stream->queue->wait(end.after);
      if (!std::ranges::count(used, end.stream->communicator))
        used.push_back(end.stream->communicator);
    }
    communicators->callAsGroup(used, [&] {
      for (const End &end : ends)
        if (end.isSend)
          send(*end.stream, end.peer, end.bytes);
        else
          receive(*end.stream, end.peer, end.bytes);
    });
    std::map<CudaQueue *, Event> events;
    for (const End &end : ends) {
      CudaQueue *queue = end.stream->queue.get();
      if (!events.contains(queue))
        events[queue] = queue->record();
      *end.done = events[queue];
    }
  }

  void send(const Stream &stream, uint32_t to, ConstBytes bytes) {
    if (!bytes.empty())
      expect(ncclSend(bytes.data(), bytes.size(), ncclUint8, stream.indexOf(to),
                      stream.communicator, stream.queue->stream()),
             "ncclSend", stream.communicator);
  }
  void receive(const Stream &stream, uint32_t from, Bytes bytes) {
    if (!bytes.empty())
      expect(ncclRecv(bytes.data(), bytes.size(), ncclUint8,
                      stream.indexOf(from), stream.communicator,
                      stream.queue->stream()),
             "ncclRecv", stream.communicator);
  }

  void ncclAllReduceSum(Stream &stream, ElementType type,
                        const std::vector<ConstBytes> &given, Bytes sum) {
    ConstBytes own = given.front();
    if (given.size() > 1) {
      stream.queue->fold(type, given, sum);
      own = sum;
    }
    const ncclDataType_t ncclType = type == ElementType::Float32   ? ncclFloat32
                                    : type == ElementType::Float64 ? ncclFloat64
                                    : type == ElementType::BFloat16
                                        ? ncclBfloat16
                                        : ncclUint64;
    communicators->callAsGroup({&stream.communicator, 1}, [&] {
      expect(ncclAllReduce(own.data(), sum.data(),
                           sum.size() / elementBytes(type), ncclType, ncclSum,
                           stream.communicator, stream.queue->stream()),
             "ncclAllReduce", stream.communicator);
    });
  }

  void sumInOrder(Stream &stream, const ReduceGroup &group, ElementType type,
                  const std::vector<ConstBytes> &given, Bytes sum) {
    const OrderedSum plan(group, sum.size(), options.scratchBytes);
    const std::vector<uint32_t> &members = plan.members();
    const auto self = static_cast<size_t>(
        std::ranges::lower_bound(members, rank()) - members.begin());
    for (uint64_t round = 0; round < plan.rounds(); ++round) {
      auto shareOf = [&](auto bytes, size_t member) {
        OrderedSum::Share share = plan.share(round, member);
        return bytes.subspan(share.begin, share.bytes);
      };
      const size_t mine = shareOf(sum, self).size();
      std::vector<ConstBytes> summands;
      communicators->callAsGroup({&stream.communicator, 1}, [&] {
        for (size_t peer = 0; peer < members.size(); ++peer)
          for (ConstBytes contribution : given)
            if (peer != self)
              send(stream, members[peer], shareOf(contribution, peer));
        size_t own = 0;
        std::byte *next = stream.scratch.get();
        for (uint32_t from : group.contributors) {
          if (from == rank()) {
            summands.push_back(shareOf(given[own++], self));
            continue;
          }
          receive(stream, from, {next, mine});
          summands.push_back({next, mine});
          next += mine;
        }
      });
      Bytes result = shareOf(sum, self);
      stream.queue->fold(type, std::move(summands), result);
      communicators->callAsGroup({&stream.communicator, 1}, [&] {
        for (size_t peer = 0; peer < members.size(); ++peer)
          if (peer != self) {
            send(stream, members[peer], result);
            receive(stream, members[peer], shareOf(sum, peer));
          }
      });
    }
  }

  CudaDevice &device;
  Control &control;
  const NcclOptions options;
  MessageModel model = MessageModel::StreamPerDevice;
  std::mutex mutex; ///< guards `communicators`: abort may come at any time
  // The order of these members matters: streams are destroyed before the
  // communicators that they use.
  std::unique_ptr<Communicators> communicators;
  std::shared_ptr<CudaQueue> local;
  std::map<Key, Stream> streams;
  std::set<Key> seen;
  bool inGroup = false;
  std::vector<End> posted; ///< ends posted since beginGroup
};
} // namespace

std::unique_ptr<Channels>
chimera::runtime::makeNcclChannels(CudaDevice &device, Control &control,
                                   const NcclOptions &options) {
  return std::make_unique<NcclChannels>(device, control, options);
}
