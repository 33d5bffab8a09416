//===- Mesh.h - Messages over TCP between all ranks -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank has a connection to every rank that it sends to, made when it is
// needed. A thread of the rank moves bytes while the rank does something else.
// Messages are of streams: those of a stream from one rank to another arrive in
// order, those of two streams know nothing of each other. What arrives before
// it is asked for is kept.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_TCP_MESH_H
#define CHIMERA_RUNTIME_CHANNEL_TCP_MESH_H

#include "runtime/device/Bytes.h"
#include "runtime/system/Deadline.h"
#include "runtime/system/Socket.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace chimera::runtime::tcp {

/// Where a rank listens.
struct Address {
  std::vector<std::string> hosts; ///< numbers, the likeliest first
  uint16_t port = 0;
};

/// How the ranks of a run find each other.
struct Book {
  uint32_t rank = 0;
  std::vector<Address> addresses; ///< by rank
  /// By rank: what tells its process from any other that says it is that rank.
  /// A connection that does not know it is refused.
  std::vector<uint64_t> secrets = {};
  /// By rank, the lowest rank on its host. Empty if all are on one.
  std::vector<uint32_t> leaders = {};
};

/// A message under way.
class Operation {
public:
  bool isDone() const { return done.load(std::memory_order_acquire); }

private:
  friend class Mesh;
  std::atomic<bool> done{false};
  // Guarded by the mesh.
  uint32_t peer = 0;
  bool isSend = false;
  Bytes bytes;                ///< empty once it is given up
  std::vector<std::byte> own; ///< what is left of a send that was given up
  uint64_t other = 0;         ///< bytes at the other end
  bool isWrongSize = false;
  std::function<void()> onDone;
};
using SharedOperation = std::shared_ptr<Operation>;

class Mesh {
public:
  using Stream = uint64_t;

  /// Listens. `onLost` is called, once for a rank, by the thread of the mesh,
  /// when a rank ends without saying so, or is silent for longer than `silence`
  /// though it is watched.
  Mesh(const Book &book, Listener listener, std::chrono::milliseconds silence,
       std::function<void(uint32_t rank, const std::string &how)> onLost);
  /// Says to all that this rank leaves, when what it sends is on its way.
  ~Mesh();
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;

  uint32_t rank() const { return book.rank; }
  uint32_t ranks() const {
    return static_cast<uint32_t>(book.addresses.size());
  }

  /// Bytes of a send may be changed, and those of a receive be read, when the
  /// operation is done. `onDone` is called by the thread of the mesh, or by
  /// this call. Throws std::runtime_error where the rank cannot be reached, and
  /// std::invalid_argument for a rank that there is not.
  SharedOperation send(uint32_t to, Stream stream, ConstBytes bytes,
                       std::function<void()> onDone = {});
  SharedOperation receive(uint32_t from, Stream stream, Bytes bytes,
                          std::function<void()> onDone = {});

  /// Waits until it is done. Throws WaitError where `timeout` passes first, the
  /// mesh was aborted, or the other rank is lost; std::invalid_argument where
  /// its ends have different sizes.
  void wait(const SharedOperation &operation,
            std::chrono::milliseconds timeout);
  /// The same of any condition, which is asked when something was done; it is
  /// false when it has to wait. `what` says for what.
  void waitUntil(const std::function<bool()> &condition,
                 std::chrono::milliseconds timeout,
                 const std::function<std::string()> &what);
  /// Gives an operation up: its memory is no longer used.
  void abandon(const SharedOperation &operation);

  /// Connects to a rank, unless it has. Throws std::runtime_error where that
  /// takes longer than `timeout` for one of its addresses, or is refused, and
  /// WaitError where the run was aborted, by that rank perhaps before it ended.
  void reach(uint32_t peer, std::chrono::milliseconds timeout);
  /// Whether it has connected to a rank: to send to it then waits for nobody.
  bool hasReached(uint32_t peer) const;
  /// Whether a rank is known to have left, or to be lost.
  bool hasLost(uint32_t peer) const;

  /// Connects to a rank, sends it signs of life and expects its own.
  void watch(uint32_t peer);

  /// Makes all waits throw. Any thread may call it; the first reason counts.
  void abort(const std::string &reason);

  /// How many bytes a receive found at the other end.
  static uint64_t sizeOf(const Operation &operation) { return operation.other; }

private:
  /// What a connection begins with, sent by who makes it and answered by the
  /// other with its own rank.
  struct Greeting {
    uint64_t magic, secret, rank;
  };
  static constexpr uint64_t kMagic = 0x324d454843;
  enum Kind : uint64_t { Payload, SignOfLife, Bye };
  struct Header {
    uint64_t kind;
    uint64_t stream;
    uint64_t bytes;
  };
  struct Frame {
    Header header;
    SharedOperation operation; ///< none of a sign of life
  };
  struct Outgoing {
    Socket socket;
    bool isBroken = false;
    std::deque<Frame> frames;
    uint64_t sent = 0; ///< of the first frame, header included
  };
  struct Incoming {
    Socket socket;
    std::optional<uint32_t> from; ///< none before its greeting
    std::vector<std::byte> greeting;
    std::vector<std::byte> head;
    Header header{};
    bool inPayload = false;
    SharedOperation operation;
    std::vector<std::byte> kept; ///< payload that nobody asked for yet
    bool isUnwanted = false;     ///< that nobody will ask for
    uint64_t got = 0;            ///< of the greeting, header or payload
    Deadline greetsUntil{kGreeting};
    /// Whether more than a greeting came: who made it has not given it up.
    bool isConfirmed = false;
  };
  struct Inbox {
    std::deque<std::vector<std::byte>> kept;
    std::deque<SharedOperation> asked;
  };
  struct Departure {
    uint32_t peer;
    std::string how;
    bool isLoss;
  };
  using Done = std::vector<std::function<void()>>;
  static constexpr std::chrono::seconds kGreeting{5};

  void run();
  bool turn(std::optional<Deadline> &flushing);
  Socket dial(uint32_t peer, std::chrono::milliseconds connecting,
              std::chrono::milliseconds answering) const;
  Socket dialOrHearWhy(uint32_t peer, std::chrono::milliseconds connecting,
                       std::chrono::milliseconds answering);
  void throwIfAborted() const;
  void reach(uint32_t peer, std::chrono::milliseconds connecting,
             std::chrono::milliseconds answering);
  void accept();
  void reachForLong(uint32_t peer);
  void flush(Outgoing &outgoing, uint32_t peer, Done &done);
  bool readFrom(Incoming &incoming, Done &done);
  bool greet(Incoming &incoming);
  void beginPayload(Incoming &incoming);
  void endPayload(Incoming &incoming, Done &done);
  void deliver(Inbox &inbox, std::vector<std::byte> message, Done &done);
  void fill(Operation &receive, ConstBytes message, Done &done);
  void finish(Operation &operation, Done &done);
  void callBack(const Done &done);
  bool hears(uint32_t peer) const;
  void lose(uint32_t peer, const std::string &how);
  void keepAlive();
  void wake();
  uint32_t checked(uint32_t peer) const;

  const Book book;
  const Listener listener;
  const std::chrono::milliseconds silence;
  const std::function<void(uint32_t, const std::string &)> onLost;
  Socket wakeUp; ///< an event that ends the thread's sleep

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Outgoing> outgoing;
  std::vector<Incoming> incoming;
  std::map<std::pair<uint32_t, Stream>, Inbox> inboxes;
  std::map<uint32_t, std::string> gone; ///< ranks that left or were lost
  /// Ranks that have left or were lost, but are not in `gone` yet: the mesh's
  /// thread first makes the calls for messages that they sent, of which one may
  /// say why they are gone.
  std::vector<Departure> departures;
  std::map<uint32_t, Deadline> watched; ///< until when each may be silent
  std::chrono::steady_clock::time_point nextSign, nextAccept;
  std::optional<std::string> aborted;
  bool isLeaving = false;
  std::thread thread; // last: it uses the others
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_MESH_H
