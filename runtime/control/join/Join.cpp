//===- Join.cpp - A process joins its job as a rank -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/join/Join.h"

#include "runtime/channel/tcp/Channels.h"
#include "runtime/system/Deadline.h"

#include <stdexcept>

using namespace chimera::runtime;

struct JoinedJob::State {
  explicit State(const JoinOptions &options) : options(options) {
    if (options.transport == JobTransport::Tcp)
      return;
    session =
        options.startMpi(options.allowProgressThread ? MpiThreads::Multiple
                                                     : MpiThreads::Funneled);
    this->options.rank = session->rank();
    this->options.ranks = session->ranks();
  }

  std::vector<std::string> exchange(const std::string &own,
                                    std::chrono::milliseconds timeout,
                                    const LongWaitHandler &onLongWait) {
    if (session)
      return session->allGatherTexts(own);
    return exchangeAtStore(options.store, options.rank, options.ranks, own,
                           timeout, onLongWait);
  }

  JoinOptions options;
  std::optional<PeerInfo> peerInfo;
  std::unique_ptr<MpiSession> session; // destroyed after the control
  std::optional<TcpControl> control;
};

JoinedJob::JoinedJob(const JoinOptions &options)
    : state(std::make_unique<State>(options)) {}

JoinedJob::~JoinedJob() = default;

uint32_t JoinedJob::rank() const { return state->options.rank; }
uint32_t JoinedJob::ranks() const { return state->options.ranks; }

bool JoinedJob::allowsProgressThread() const {
  return !state->session || state->session->allowsProgressThread();
}

void JoinedJob::connect(std::chrono::milliseconds timeout,
                        const LongWaitHandler &onLongWait) {
  Listener listener;
  const StoreAddress &store = state->options.store;
  PeerEntry own = PeerEntry::own(listener.port, store.host);
  std::vector<std::string> entries = state->exchange(
      own.text(), std::min<std::chrono::milliseconds>(timeout, kForever),
      onLongWait);
  if (entries.size() != ranks())
    throw std::runtime_error("expected " + std::to_string(ranks()) +
                             " ranks at " + store.host + " port " +
                             std::to_string(store.port) + ", got " +
                             std::to_string(entries.size()) +
                             ": is WORLD_SIZE equal on all ranks, or does "
                             "another run use this address?");
  state->peerInfo.emplace(rank(), entries);
  state->control.emplace(state->peerInfo->peerTable, std::move(listener),
                         watcherTimeout(timeout));
}

std::vector<PeerInfo::Process> JoinedJob::hostProcesses() const {
  return state->peerInfo ? state->peerInfo->hostProcesses()
                         : std::vector<PeerInfo::Process>();
}

std::string JoinedJob::hostLockName() const {
  if (!state->peerInfo)
    return {};
  // No other process of the host uses this port, because the process keeps its
  // listener open until it ends.
  const uint32_t lowest = state->peerInfo->hostRanks().front();
  return "ranks of port " +
         std::to_string(state->peerInfo->peerTable.addresses[lowest].port);
}

std::vector<uint32_t> JoinedJob::hostRanks() const {
  return state->peerInfo->hostRanks();
}

Control &JoinedJob::control() { return *state->control; }

std::unique_ptr<Channels> JoinedJob::makeChannels(bool progressThread,
                                                  bool transportAllReduce) {
  if (state->session)
    return state->session->makeChannels(
        {.progressThread = progressThread,
         .transportAllReduce = transportAllReduce});
  return makeTcpChannels(state->control->mesh());
}
