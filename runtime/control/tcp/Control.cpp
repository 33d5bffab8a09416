//===- Control.cpp - Control over TCP -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/Control.h"

#include "runtime/channel/tcp/Streams.h"
#include "runtime/control/AbortNotifier.h"
#include "runtime/control/tcp/Accounts.h"
#include "runtime/system/Utf8.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;

namespace {
/// The size in bytes of an abort message, including the terminating 0.
constexpr size_t kAbortMessageBytes = 512;
} // namespace

struct TcpControl::State {
  /// Counts the bytes that this rank has sent to another rank and that the
  /// other rank has not acknowledged.
  struct Unread {
    std::atomic<uint64_t> bytes{0};
    uint64_t received = 0; ///< buffer for the next acknowledgement
  };

  State(const PeerTable &peerTable, Listener listener,
        std::chrono::milliseconds silence)
      : leaders(peerTable.leaders), unread(peerTable.addresses.size()),
        abortMessages(peerTable.addresses.size()), accounts(mesh, peerTable),
        mesh(peerTable, std::move(listener), silence,
             [this](uint32_t rank, const std::string &how) {
               // All ranks notice the loss of rank 0. Only some ranks notice
               // the loss of another rank, so announce it.
               announceAbort("rank " + std::to_string(rank) + " " + how);
             }) {}

  bool isRoot() const { return mesh.rank() == 0; }

  void listenTo(uint32_t rank) {
    listenForAborts(rank);
    listenForAcknowledgements(rank);
  }
  void listenForAborts(uint32_t rank) {
    mesh.receive(rank, Streams::kAbort, abortMessages[rank], [this, rank] {
      const char *text =
          reinterpret_cast<const char *>(abortMessages[rank].data());
      announceAbort(std::string(text, strnlen(text, kAbortMessageBytes - 1)));
      listenForAborts(rank);
    });
  }
  void listenForAcknowledgements(uint32_t rank) {
    Unread &own = unread[rank];
    mesh.receive(rank, Streams::kAcknowledgements,
                 std::as_writable_bytes(std::span(&own.received, 1)),
                 [this, rank, &own] {
                   own.bytes.fetch_sub(own.received);
                   listenForAcknowledgements(rank);
                 });
  }

  /// Ends the waits of this rank. Rank 0 tells all ranks. Any other rank tells
  /// rank 0, which tells the rest. Ranks that are not connected are not told:
  /// when they connect, they find that this rank has left.
  void announceAbort(const std::string &reason) {
    if (hasAnnounced.exchange(true))
      return;
    std::vector<std::byte> text(kAbortMessageBytes);
    size_t size = utf8PrefixSize(reason, kAbortMessageBytes - 1);
    std::memcpy(text.data(), reason.data(), size);
    for (uint32_t rank = 0; rank < (isRoot() ? mesh.ranks() : 1); ++rank)
      try {
        if (mesh.isConnectedTo(rank))
          sendCopy(rank, Streams::kAbort, text);
      } catch (const std::runtime_error &) {
        // `rank` is lost, so it needs no message.
      }
    mesh.abort(reason);
    aborted.notify(reason);
  }

  void sendCopy(uint32_t to, Mesh::Stream stream,
                std::vector<std::byte> bytes) {
    auto held = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    mesh.send(to, stream, *held, [held] {});
  }

  const std::vector<uint32_t> leaders; ///< by rank, see PeerTable::leaders
  AbortNotifier aborted;
  std::atomic<bool> hasAnnounced{false};
  std::vector<Unread> unread; ///< by rank
  /// The buffers for abort messages, by rank.
  std::vector<std::array<std::byte, kAbortMessageBytes>> abortMessages;
  Accounts accounts;
  Mesh mesh; // last: its thread uses the other members
};

TcpControl::TcpControl(const PeerTable &peerTable, Listener listener,
                       std::chrono::milliseconds silence)
    : state(std::make_unique<State>(peerTable, std::move(listener), silence)) {
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    state->listenTo(rank);
  state->accounts.listen();
  try {
    for (uint32_t rank = 0; rank < ranks(); ++rank)
      if (rank != this->rank() && (this->rank() == 0 || rank == 0))
        state->mesh.watch(rank);
  } catch (const std::runtime_error &error) {
    state->announceAbort("rank " + std::to_string(this->rank()) + " " +
                         error.what());
    throw;
  }
}

TcpControl::~TcpControl() { state->accounts.close(); }

uint32_t TcpControl::rank() const { return state->mesh.rank(); }
uint32_t TcpControl::ranks() const { return state->mesh.ranks(); }
Mesh &TcpControl::mesh() { return state->mesh; }

void TcpControl::send(uint32_t to, ConstBytes bytes,
                      std::chrono::milliseconds timeout) {
  if (to >= ranks())
    throw std::invalid_argument("expected a rank below " +
                                std::to_string(ranks()) + ", got " +
                                std::to_string(to));
  State::Unread &own = state->unread[to];
  own.bytes.fetch_add(bytes.size());
  state->sendCopy(to, Streams::kControl, {bytes.begin(), bytes.end()});
  state->mesh.waitUntil(
      [&] { return own.bytes.load() <= kUnread; }, timeout,
      [&] { return "rank " + std::to_string(to) + " to receive"; });
}

void TcpControl::receive(uint32_t from, Bytes bytes,
                         std::chrono::milliseconds timeout) {
  SharedMeshOperation operation =
      state->mesh.receive(from, Streams::kControl, bytes);
  struct Abandon {
    Mesh &mesh;
    const SharedMeshOperation &operation;
    ~Abandon() { mesh.abandon(operation); }
  } abandon{state->mesh, operation};
  auto answer = [&] {
    uint64_t size = Mesh::receivedBytes(*operation);
    auto word = std::as_bytes(std::span(&size, 1));
    try {
      state->sendCopy(from, Streams::kAcknowledgements,
                      {word.begin(), word.end()});
    } catch (const std::runtime_error &) {
      // The sender has left and needs no acknowledgement.
    }
  };
  try {
    state->mesh.wait(operation, timeout);
  } catch (const std::invalid_argument &) {
    answer();
    throw;
  }
  answer();
}

void TcpControl::watch(const std::vector<uint32_t> &peers) {
  // Links inside a host are not watched: they do not break, and the watcher
  // threads of the host (watch/Watcher.h) notice more failures.
  const std::vector<uint32_t> &leaders = state->leaders;
  for (uint32_t peer : peers)
    if (!leaders.empty() && leaders[peer] != leaders[rank()])
      state->mesh.watch(peer);
}

void TcpControl::abort(const std::string &reason) {
  state->announceAbort(reason);
}

void TcpControl::onAbort(AbortNotifier::Handler handler) {
  state->aborted.setHandler(std::move(handler));
}

bool TcpControl::submitAccount(ConstBytes account, uint32_t ranks) {
  return state->accounts.submitAccount(account, ranks);
}

void TcpControl::setReportWriter(ReportWriter write) {
  state->accounts.setWriter(std::move(write));
}
