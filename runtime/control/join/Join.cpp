//===- Join.cpp - A process joins its job as a rank -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/join/Join.h"

#include "runtime/channel/tcp/Channels.h"
#include "runtime/system/Deadline.h"
#ifdef CHIMERA_HAVE_MPI
#include "runtime/channel/mpi/Session.h"
#endif

#include <stdexcept>

using namespace chimera::runtime;

struct JoinedJob::State {
  explicit State(const JoinOptions &options) : options(options) {
    if (options.transport == JobTransport::Tcp)
      return;
#ifdef CHIMERA_HAVE_MPI
    session.emplace(options.mayProgress ? MpiThreads::Several
                                        : MpiThreads::One);
    this->options.rank = session->rank();
    this->options.ranks = session->ranks();
#else
    throw std::runtime_error("this chimera-run was built without MPI: install "
                             "it and build again, or run with --transport tcp "
                             "or in one process");
#endif
  }

  std::vector<std::string> exchange(const std::string &own,
                                    std::chrono::milliseconds timeout,
                                    const OnLongWait &onLongWait) {
#ifdef CHIMERA_HAVE_MPI
    if (session)
      return session->exchange(own);
#endif
    return exchangeAtStore(options.store, options.rank, options.ranks, own,
                           timeout, onLongWait);
  }

  JoinOptions options;
  std::optional<Meeting> meeting;
#ifdef CHIMERA_HAVE_MPI
  std::optional<MpiSession> session; // destroyed after the control
#endif
  std::optional<TcpControl> control;
};

JoinedJob::JoinedJob(const JoinOptions &options)
    : state(std::make_unique<State>(options)) {}

JoinedJob::~JoinedJob() = default;

uint32_t JoinedJob::rank() const { return state->options.rank; }
uint32_t JoinedJob::ranks() const { return state->options.ranks; }

bool JoinedJob::allowsProgress() const {
#ifdef CHIMERA_HAVE_MPI
  if (state->session)
    return state->session->allowsProgress();
#endif
  return true;
}

void JoinedJob::meet(std::chrono::milliseconds timeout,
                     const OnLongWait &onLongWait) {
  Listener listener;
  const StoreAddress &store = state->options.store;
  Entry own = Entry::own(listener.port, store.host);
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
  state->meeting.emplace(rank(), entries);
  state->control.emplace(state->meeting->book, std::move(listener),
                         afterWaits(timeout));
}

std::vector<Meeting::Process> JoinedJob::hostProcesses() const {
  return state->meeting ? state->meeting->hostProcesses()
                        : std::vector<Meeting::Process>();
}

std::string JoinedJob::claimName() const {
  if (!state->meeting)
    return {};
  // The port is unique on the host: the process keeps its listener open until
  // it ends.
  const uint32_t lowest = state->meeting->hostRanks().front();
  return "ranks of port " +
         std::to_string(state->meeting->book.addresses[lowest].port);
}

std::vector<uint32_t> JoinedJob::hostRanks() const {
  return state->meeting->hostRanks();
}

Control &JoinedJob::control() { return *state->control; }

std::unique_ptr<Channels> JoinedJob::makeChannels(bool progressThread,
                                                  bool ownAllReduce) {
#ifdef CHIMERA_HAVE_MPI
  if (state->session)
    return state->session->makeChannels(
        {.progressThread = progressThread, .ownAllReduce = ownAllReduce});
#endif
  (void)progressThread, (void)ownAllReduce;
  return makeTcpChannels(state->control->mesh());
}
