//===- Channels.cpp - Channels over TCP -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Channels.h"

#include "runtime/channel/tcp/AllReduce.h"
#include "runtime/channel/tcp/Streams.h"

#include <algorithm>
#include <stdexcept>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;

namespace {
struct TcpMessage final : Request {
  TcpMessage(Mesh &mesh, SharedMeshOperation operation)
      : mesh(mesh), operation(std::move(operation)) {}
  ~TcpMessage() override { mesh.abandon(operation); }

  Mesh &mesh;
  const SharedMeshOperation operation;
};

struct Summing final : Request {
  explicit Summing(std::shared_ptr<AllReduce> reduction, uint32_t group)
      : reduction(std::move(reduction)), group(group) {}
  ~Summing() override {
    if (!reduction->isDone())
      reduction->abandon();
  }

  const std::shared_ptr<AllReduce> reduction;
  const uint32_t group;
};

class TcpChannels final : public Channels {
public:
  explicit TcpChannels(Mesh &mesh) : mesh(mesh) {}

  uint32_t rank() const override { return mesh.rank(); }
  uint32_t ranks() const override { return mesh.ranks(); }

  std::unique_ptr<Request> postSend(uint32_t to, ConstBytes bytes,
                                    Event) override {
    return std::make_unique<TcpMessage>(
        mesh, mesh.send(to, Streams::kMessages, bytes));
  }
  std::unique_ptr<Request> postReceive(uint32_t from, Bytes bytes,
                                       Event) override {
    return std::make_unique<TcpMessage>(
        mesh, mesh.receive(from, Streams::kMessages, bytes));
  }

  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> given,
                                          Bytes sum, Event) override {
    checkAllReduce(group, rank(), type, given, sum);
    if (uint32_t last = std::ranges::max(group.contributors); last >= ranks())
      throw std::invalid_argument(
          "group " + std::to_string(group.id) + ": expected ranks below " +
          std::to_string(ranks()) + ", got " + std::to_string(last));
    auto reduction = std::make_shared<AllReduce>(
        mesh, group, started[group.id]++, type, std::move(given), sum, slices);
    auto request = std::make_unique<Summing>(reduction, group.id);
    reduction->start();
    return request;
  }

  void wait(Queue &, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    if (auto *message = dynamic_cast<TcpMessage *>(request.get()))
      return mesh.wait(message->operation, timeout);
    auto &summing = dynamic_cast<Summing &>(*request);
    mesh.waitUntil([&] { return summing.reduction->isDone(); }, timeout,
                   [&] {
                     return "the all-reduce of group " +
                            std::to_string(summing.group);
                   });
  }

  void abort(const std::string &reason) override { mesh.abort(reason); }

private:
  Mesh &mesh;
  /// The number of started all-reduces, by group.
  std::map<uint32_t, uint64_t> started;
  const std::shared_ptr<SlicePool> slices = std::make_shared<SlicePool>();
};
} // namespace

std::unique_ptr<Channels> chimera::runtime::makeTcpChannels(Mesh &mesh) {
  return std::make_unique<TcpChannels>(mesh);
}
