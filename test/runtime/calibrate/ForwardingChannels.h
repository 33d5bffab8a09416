//===- ForwardingChannels.h - Channels that forward to others ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CALIBRATE_FORWARDINGCHANNELS_H
#define CHIMERA_TEST_RUNTIME_CALIBRATE_FORWARDINGCHANNELS_H

#include "runtime/channel/Channels.h"

namespace chimera::runtime {

/// Channels of one rank that forward every call to other channels. Tests
/// override some calls.
class ForwardingChannels : public Channels {
public:
  explicit ForwardingChannels(Channels &channels) : channels(channels) {}
  uint32_t rank() const override { return channels.rank(); }
  uint32_t ranks() const override { return channels.ranks(); }
  void prepare(const Communication &communication) override {
    channels.prepare(communication);
  }
  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event after) override {
    return channels.postSend(to, bytes, after);
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event after) override {
    return channels.postReceive(from, bytes, after);
  }
  std::unique_ptr<Request> postSendBlock(uint32_t to, Block &memory,
                                         uint64_t size, Event after) override {
    return channels.postSendBlock(to, memory, size, after);
  }
  std::unique_ptr<Request> postReceiveBlock(uint32_t from, Block &memory,
                                            uint64_t size,
                                            Event after) override {
    return channels.postReceiveBlock(from, memory, size, after);
  }
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event after) override {
    return channels.startAllReduce(group, type, std::move(contributions), sum,
                                   after);
  }
  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    channels.wait(queue, std::move(request), timeout);
  }
  void abort(const std::string &reason) override { channels.abort(reason); }

private:
  Channels &channels;
};

} // namespace chimera::runtime

#endif // CHIMERA_TEST_RUNTIME_CALIBRATE_FORWARDINGCHANNELS_H
