//===- Mesh.h - Messages over TCP between all ranks -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank connects to every rank that it sends to, when it is needed: over
// TCP, or to a rank of its own host over a Unix socket, which takes half the
// time. Messages are of streams: those of a stream from one rank to another
// arrive in order, those of two streams know nothing of each other.
//
// A message leaves when its receive is posted, so that it goes into the memory
// of its receive and nowhere else. On the connection from A to B travel
//
//   from A to B, frames:   {kind, stream, bytes}, and after a Payload header so
//                          many bytes, one message;
//   from B to A, credits:  {stream, count}: B has posted so many more receives
//                          from A on the stream.
//
// The k-th receive of a stream takes the k-th message. A message that has a
// credit leaves at once. One that has none waits at A, unless it is small: B
// keeps up to kUnasked bytes of A's messages that it has not asked for, and as
// many of control's, so A sends these ahead and counts. The credit that comes
// later for such a message makes room for the next. So a rank holds, besides
// the memory of its receives, at most 2 kUnasked bytes for each other rank.
// Signs of life and goodbyes need no credit, and a message of one stream never
// waits for a credit of another.
//
// One thread at a time moves bytes and makes the calls of what is done: a
// thread that waits for the mesh, or, while none does, a thread of the mesh, so
// that messages move while the rank computes. Whoever posts a message or a
// receive hands it to the system by itself, if that takes it.
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
#include <poll.h>
#include <thread>
#include <vector>

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
  bool isReleased = false; ///< a send that may leave
  bool isGivenUp = false;  ///< a receive whose message goes nowhere
  std::function<void()> onDone;
};
using SharedOperation = std::shared_ptr<Operation>;

class Mesh {
public:
  using Stream = uint64_t;
  /// Streams below it are control's.
  static constexpr Stream kFirstOfData = 16;
  /// What a rank keeps at most of another's messages that it has not asked for,
  /// of data and of control each. A message counts kOverhead bytes more.
  static constexpr uint64_t kUnasked = 64 << 10, kOverhead = 64;

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
  /// operation is done, which for a send may be when its receive is posted.
  /// `onDone` is called by whichever thread moves bytes, or by this call.
  /// Throws std::runtime_error where the rank cannot be reached, and
  /// std::invalid_argument for a rank that there is not.
  SharedOperation send(uint32_t to, Stream stream, ConstBytes bytes,
                       std::function<void()> onDone = {});
  SharedOperation receive(uint32_t from, Stream stream, Bytes bytes,
                          std::function<void()> onDone = {});
  /// The same, but the other rank learns of it with the next receive only.
  SharedOperation receiveLater(uint32_t from, Stream stream, Bytes bytes,
                               std::function<void()> onDone = {});
  /// It learns of them now.
  void announceReceives();

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
  /// Gives an operation up: its memory is no longer used. The message of a
  /// receive goes nowhere. A send that has not begun never does, nor does any
  /// later one of its stream.
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

  /// How many streams it remembers anything of: those on which something is not
  /// done, or was sent ahead.
  size_t countStreams() const;

  /// How many bytes a receive found at the other end.
  static uint64_t sizeOf(const Operation &operation) { return operation.other; }

private:
  /// What a connection begins with, sent by who makes it and answered by the
  /// other with its own rank.
  struct Greeting {
    uint64_t magic, secret, rank;
  };
  static constexpr uint64_t kMagic = 0x334d454843;
  enum Kind : uint64_t { Payload, SignOfLife, Bye };
  struct Header {
    uint64_t kind;
    uint64_t stream;
    uint64_t bytes;
  };
  struct Credit {
    uint64_t stream, count;
  };
  struct Frame {
    Header header;
    SharedOperation operation; ///< none of a sign of life
  };
  /// A stream to another rank. It is kept only while it is not idle.
  struct Sending {
    std::deque<SharedOperation> waiting; ///< for a credit
    std::deque<uint64_t> unasked;        ///< what left without one counts
    uint64_t credits = 0;                ///< that no message has used
    bool isBroken = false;               ///< a send was given up
    bool isIdle() const {
      return waiting.empty() && unasked.empty() && credits == 0 && !isBroken;
    }
  };
  struct Outgoing {
    Socket socket;
    bool isBroken = false;
    bool saidBye = false;
    std::map<Stream, Sending> streams;
    size_t waiting = 0;       ///< messages, for a credit
    uint64_t unasked[2] = {}; ///< of all streams: of data, of control
    std::deque<Frame> frames;
    uint64_t sent = 0;           ///< of the first frame, header included
    std::vector<std::byte> part; ///< of a credit
  };
  struct Incoming {
    Socket socket;
    std::optional<uint32_t> from; ///< none before its greeting
    std::vector<std::byte> greeting;
    std::vector<std::byte> head;
    Header header{};
    bool inPayload = false;
    SharedOperation operation;   ///< whose message this is
    std::vector<std::byte> kept; ///< payload that nobody asked for yet
    bool isUnwanted = false;     ///< payload that goes nowhere
    uint64_t got = 0;            ///< of the greeting, header or payload
    std::vector<Credit> credits; ///< to be sent
    uint64_t creditBytesSent = 0;
    Deadline greetsUntil{kGreeting};
    /// Whether more than a greeting came: who made it has not given it up.
    bool isConfirmed = false;
  };
  /// A stream from another rank. It is kept only while it is not idle.
  struct Inbox {
    std::deque<std::vector<std::byte>> kept;
    std::deque<SharedOperation> asked;
    std::deque<SharedOperation> offered; ///< by this rank to itself
    bool isIdle() const {
      return kept.empty() && asked.empty() && offered.empty();
    }
  };
  using Inboxes = std::map<std::pair<uint32_t, Stream>, Inbox>;
  struct Departure {
    uint32_t peer;
    std::string how;
    bool isLoss;
  };
  using Done = std::vector<std::function<void()>>;
  static constexpr std::chrono::seconds kGreeting{5};

  using Lock = std::unique_lock<std::mutex>;

  // Connections.
  Socket dial(uint32_t peer, std::chrono::milliseconds connecting,
              std::chrono::milliseconds answering) const;
  bool answers(const Socket &socket, std::chrono::milliseconds patience) const;
  Socket dialOrHearWhy(uint32_t peer, std::chrono::milliseconds connecting,
                       std::chrono::milliseconds answering);
  void reach(uint32_t peer, std::chrono::milliseconds connecting,
             std::chrono::milliseconds answering);
  void reachForLong(uint32_t peer);
  void accept();
  void pauseAccepting(int error, bool hasStrangers);
  bool greet(Incoming &incoming);
  Incoming *connectionFrom(uint32_t peer);
  void lose(uint32_t peer, const std::string &how);
  void fail(Outgoing &connection, uint32_t peer, const std::string &how);
  void keepAlive();
  uint32_t checked(uint32_t peer) const;

  // Streams.
  SharedOperation post(uint32_t from, Stream stream, Bytes bytes,
                       std::function<void()> onDone, bool isAnnounced);
  void release(Outgoing &connection, Stream stream, Sending &sending);
  void credit(Outgoing &connection, const Credit &credit);
  void announce(uint32_t from, Stream stream, uint64_t count);
  void fill(Operation &receive, ConstBytes message, Done &done);
  void finish(Operation &operation, Done &done);
  void eraseIfIdle(Inboxes::iterator inbox);
  void eraseIfIdle(Outgoing &connection, Stream stream);

  // Bytes.
  void flush(Outgoing &outgoing, uint32_t peer, Done &done);
  void readCredits(Outgoing &outgoing, uint32_t peer);
  void sendCredits(Incoming &incoming);
  bool readFrom(Incoming &incoming, Done &done);
  Bytes roomOf(Incoming &incoming);
  bool endPart(Incoming &incoming, Done &done);
  bool beginPayload(Incoming &incoming);
  void endPayload(Incoming &incoming, Done &done);

  // Threads.
  class Turn;
  void run();
  bool turn(std::optional<Deadline> &flushing);
  bool mayLeave(std::optional<Deadline> &flushing);
  std::vector<pollfd> polled() const;
  bool wantsCredits(const Outgoing &connection) const;
  void move(Lock &lock, const std::vector<pollfd> &found);
  void callBack(const Done &done);
  void throwIfAborted() const;
  void wake();

  const Book book;
  const Listener listener;
  const std::chrono::milliseconds silence;
  const std::function<void(uint32_t, const std::string &)> onLost;
  Socket wakeUp; ///< an event that ends the sleep of whoever moves bytes
  Socket resume; ///< one that ends the sleep of the mesh's own thread

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Outgoing> outgoing;
  std::vector<Incoming> incoming;
  Inboxes inboxes;
  std::vector<std::byte> sink;          ///< for payload that goes nowhere
  std::map<uint32_t, std::string> gone; ///< ranks that left or were lost
  /// Ranks that have left or were lost, but are not in `gone` yet: the mesh's
  /// thread first makes the calls for messages that they sent, of which one may
  /// say why they are gone.
  std::vector<Departure> departures;
  std::map<uint32_t, Deadline> watched; ///< until when each may be silent
  std::chrono::steady_clock::time_point nextSign, nextAccept;
  /// While no connection can be taken, as the process may open no more files:
  /// until when that may last.
  std::optional<Deadline> fullUntil;
  std::vector<Departure> untold; ///< losses, until the mesh's thread tells them
  std::optional<std::string> aborted;
  bool isLeaving = false;
  /// The thread that moves bytes now, if one does.
  std::optional<std::thread::id> mover;
  bool isDriven = false; ///< it is one that waits
  bool isAside = false;  ///< the mesh's thread leaves the sockets alone
  bool isStale = false;  ///< it does not know of some socket
  std::thread thread;    // last: it uses the others
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_MESH_H
