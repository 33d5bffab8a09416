//===- Mesh.h - Messages over TCP between all ranks -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank connects to another rank when it first sends to it. If both are on one
// host, it uses a Unix socket, which takes half the time; otherwise TCP. Every
// message belongs to a stream. Messages of one stream from one rank to another
// arrive in order. Two streams are independent.
//
// A large message is sent only after its receive is posted. So its bytes go
// directly into the memory of that receive. A connection from A to B carries
//
//   from A to B, frames:   {kind, stream, bytes}; a Payload header is followed
//                          by one message, which has `bytes` bytes;
//   from B to A, credits:  {stream, count}: B has posted `count` more receives
//                          from A on the stream.
//
// The k-th receive of a stream gets the k-th message. If A has a credit for a
// message, A sends the message at once. Otherwise the message waits at A,
// unless it is small: A may send small messages ahead of their credits. B
// buffers them. A counts their bytes: at most kSendAhead bytes for data, and as
// many for control. When the credit of such a message arrives, A subtracts its
// bytes again. So a rank needs at most 2 kSendAhead bytes for each other rank,
// in addition to the memory of its receives. Heartbeats and goodbyes need no
// credit. A message of one stream never waits for a credit of another stream.
//
// One thread at a time moves bytes and runs the callbacks of completed
// operations. This thread is in wait or waitUntil. If no thread is, the mesh's
// own thread moves bytes, so messages also move while the rank computes. A
// thread that posts a message or receive first tries to write to the socket
// itself.
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

/// The address where a rank listens.
struct Address {
  std::vector<std::string> hosts; ///< numeric addresses; likeliest first
  uint16_t port = 0;
};

/// The peer table. With it, the ranks of a run find each other.
struct PeerTable {
  uint32_t rank = 0;
  std::vector<Address> addresses; ///< by rank
  /// By rank: a random number that identifies the process of the rank. A
  /// connection to or from a process with another number is refused.
  std::vector<uint64_t> secrets = {};
  /// By rank: the lowest rank on the same host. Empty if there is only one
  /// host.
  std::vector<uint32_t> leaders = {};
};

/// A send or a receive of this rank.
class MeshOperation {
public:
  bool isDone() const { return done.load(std::memory_order_acquire); }

private:
  friend class Mesh;
  std::atomic<bool> done{false};
  // Guarded by the mutex of the mesh.
  uint32_t peer = 0;
  bool isSend = false;
  Bytes bytes;                  ///< of a receive: empty after it is given up
  std::vector<std::byte> own;   ///< copy of the bytes of a given-up send
  uint64_t bytesAtOtherEnd = 0; ///< size of the message
  bool isWrongSize = false;
  bool isReleased = false; ///< of a send: it does not wait for a credit
  bool isGivenUp = false;  ///< of a receive: its message is discarded
  std::function<void()> onDone;
};
using SharedMeshOperation = std::shared_ptr<MeshOperation>;

class Mesh {
public:
  using Stream = uint64_t;
  /// Streams with smaller numbers are for control messages.
  static constexpr Stream kFirstOfData = 16;
  /// Before the receives are posted, a rank buffers at most kSendAhead bytes of
  /// data messages and kSendAhead bytes of control messages from each other
  /// rank. For this limit, kOverhead bytes are added to the size of each
  /// message.
  static constexpr uint64_t kSendAhead = 64 << 10, kOverhead = 64;

  /// Starts to accept connections. `onLost` is called once for each lost rank,
  /// by the thread of the mesh. A rank is lost if it ends without a goodbye, or
  /// if it is watched (watch) and silent for longer than `silence`. If the
  /// thread of the mesh fails, it calls `onLost` with this rank.
  Mesh(const PeerTable &peerTable, Listener listener,
       std::chrono::milliseconds silence,
       std::function<void(uint32_t rank, const std::string &how)> onLost);
  /// Sends the messages that need no further credit and all control messages.
  /// Then tells all ranks that this rank leaves, and waits at most 2 s until
  /// they have closed their connections.
  ~Mesh();
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;

  uint32_t rank() const { return peerTable.rank; }
  uint32_t ranks() const {
    return static_cast<uint32_t>(peerTable.addresses.size());
  }

  /// Posts a message. When the operation is done, the bytes of a send may be
  /// changed, and the bytes of a receive may be read. A send may remain
  /// unfinished until its receive is posted. The thread that moves the bytes
  /// calls `onDone`. This may be the calling thread; then `onDone` is called
  /// before this function returns. Throws std::runtime_error if the rank cannot
  /// be reached, and std::invalid_argument if there is no such rank.
  SharedMeshOperation send(uint32_t to, Stream stream, ConstBytes bytes,
                           std::function<void()> onDone = {});
  SharedMeshOperation receive(uint32_t from, Stream stream, Bytes bytes,
                              std::function<void()> onDone = {});
  /// Like receive, but sends no credit. (A credit tells the sender that a
  /// receive is posted.) The next `receive` from the same rank or
  /// sendCredits sends the credit.
  SharedMeshOperation receiveWithoutCredit(uint32_t from, Stream stream,
                                           Bytes bytes,
                                           std::function<void()> onDone = {});
  /// Sends the credits of all receives that receiveWithoutCredit has posted.
  void sendCredits();

  /// Waits until the operation is done. Throws WaitError if `timeout` passes
  /// first, if the mesh is aborted, or if the other rank has left or is lost.
  /// Throws std::invalid_argument if the two ends have different sizes.
  void wait(const SharedMeshOperation &operation,
            std::chrono::milliseconds timeout);
  /// Waits until `condition` is true. `condition` is evaluated after every
  /// completed operation, with the mesh's lock held. Throws WaitError if
  /// `timeout` passes first or if the mesh is aborted. `what` returns the text
  /// of the error after a timeout: the event that did not occur.
  void waitUntil(const std::function<bool()> &condition,
                 std::chrono::milliseconds timeout,
                 const std::function<std::string()> &what);
  /// Gives up an operation. The mesh does not use its memory after this call.
  /// If the operation is a receive, its message is discarded when it arrives.
  /// If the operation is a send that has not begun, it is never sent, and
  /// neither is any later send of its stream.
  void abandon(const SharedMeshOperation &operation);

  /// Connects to a rank if it is not connected yet. Tries one address after
  /// another, each for at most `timeout`. Throws std::runtime_error if no
  /// address works. Throws WaitError if the run is aborted, perhaps by that
  /// rank before it ended.
  void connectToPeer(uint32_t peer, std::chrono::milliseconds timeout);
  /// Whether this rank is connected to `peer`. If it is, a send does not wait
  /// for a connection.
  bool isConnectedTo(uint32_t peer) const;
  /// Whether a rank is known to have left or to be lost.
  bool isGone(uint32_t peer) const;

  /// Connects to a rank, sends it heartbeats, and expects heartbeats from it.
  void watch(uint32_t peer);

  /// Makes all waits of this rank throw. Any thread may call it. Only the first
  /// call sets the reason.
  void abort(const std::string &reason);

  /// The number of streams that have state. A stream has state while one of its
  /// operations is pending or one of its messages was sent ahead of its credit.
  size_t countStreams() const;

  /// The size in bytes of the message that has arrived for a receive.
  static uint64_t receivedBytes(const MeshOperation &operation) {
    return operation.bytesAtOtherEnd;
  }

private:
  /// The first bytes of a connection, sent by the rank that connects. The other
  /// rank answers with its own greeting.
  struct Greeting {
    uint64_t magic, secret, rank;
  };
  static constexpr uint64_t kMagic = 0x334d454843;
  enum Kind : uint64_t { Payload, Heartbeat, Bye };
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
    SharedMeshOperation operation; ///< null for a heartbeat or a goodbye
  };
  /// The state of a stream to another rank. Erased when it is idle.
  struct Sending {
    std::deque<SharedMeshOperation> waiting; ///< sends that wait for a credit
    /// The bytes counted for each message that was sent ahead of its credit.
    std::deque<uint64_t> sentAhead;
    uint64_t credits = 0;  ///< number that no message has used
    bool isBroken = false; ///< a send was given up, so no other is sent
    bool isIdle() const {
      return waiting.empty() && sentAhead.empty() && credits == 0 && !isBroken;
    }
  };
  struct Outgoing {
    Socket socket;
    bool isBroken = false;
    bool saidBye = false;
    std::map<Stream, Sending> streams;
    size_t waiting = 0;         ///< number of messages that wait for a credit
    uint64_t sentAhead[2] = {}; ///< bytes sent ahead: of data, of control
    std::deque<Frame> frames;
    uint64_t sent = 0; ///< sent bytes of the first frame and its header
    std::vector<std::byte> part; ///< bytes of a credit that has arrived in part
  };
  struct Incoming {
    Socket socket;
    std::optional<uint32_t> from; ///< the other rank; empty before its greeting
    std::vector<std::byte> greeting;
    std::vector<std::byte> head;
    Header header{};
    bool inPayload = false;
    SharedMeshOperation operation;   ///< the receive that gets this message
    std::vector<std::byte> buffered; ///< payload without a posted receive
    bool isDiscarded = false;        ///< the payload is discarded
    uint64_t got = 0; ///< arrived bytes of greeting, header or payload
    std::vector<Credit> credits; ///< to be sent
    uint64_t creditBytesSent = 0;
    Deadline greetsUntil{kGreeting};
    /// Whether a frame has arrived. Before its first frame, the other rank may
    /// still give up this connection and try another address.
    bool isConfirmed = false;
  };
  /// The state of a stream from another rank. Erased when it is idle.
  struct Inbox {
    std::deque<std::vector<std::byte>> buffered; ///< messages without a receive
    std::deque<SharedMeshOperation> posted;      ///< receives without a message
    std::deque<SharedMeshOperation> offered; ///< sends of this rank to itself
    bool isIdle() const {
      return buffered.empty() && posted.empty() && offered.empty();
    }
  };
  using Inboxes = std::map<std::pair<uint32_t, Stream>, Inbox>;
  /// A rank that has left, or was lost (`isLoss`).
  struct Departure {
    uint32_t peer;
    std::string how;
    bool isLoss;
  };
  using Done = std::vector<std::function<void()>>;
  static constexpr std::chrono::seconds kGreeting{5};

  using Lock = std::unique_lock<std::mutex>;

  // Functions of MeshConnections.cpp.
  Socket dial(uint32_t peer, std::chrono::milliseconds connecting,
              std::chrono::milliseconds answering) const;
  bool answers(const Socket &socket, std::chrono::milliseconds patience) const;
  Socket connectOrReportAbort(uint32_t peer,
                              std::chrono::milliseconds connecting,
                              std::chrono::milliseconds answering);
  void connectToPeer(uint32_t peer, std::chrono::milliseconds connecting,
                     std::chrono::milliseconds answering);
  void connectWithinSilence(uint32_t peer);
  void accept();
  void pauseAccepting(int error, bool hasStrangers);
  bool greet(Incoming &incoming);
  Incoming *connectionFrom(uint32_t peer);
  void lose(uint32_t peer, const std::string &how);
  void fail(Outgoing &connection, uint32_t peer, const std::string &how);
  void keepAlive();
  uint32_t checked(uint32_t peer) const;

  // Functions of Mesh.cpp.
  SharedMeshOperation post(uint32_t from, Stream stream, Bytes bytes,
                           std::function<void()> onDone, bool sendsCredit);
  void release(Outgoing &connection, Stream stream, Sending &sending);
  void credit(Outgoing &connection, const Credit &credit);
  void announce(uint32_t from, Stream stream, uint64_t count);
  void fill(MeshOperation &receive, ConstBytes message, Done &done);
  void finish(MeshOperation &operation, Done &done);
  void eraseIfIdle(Inboxes::iterator inbox);
  void eraseIfIdle(Outgoing &connection, Stream stream);

  // Functions of MeshBytes.cpp.
  void flush(Outgoing &outgoing, uint32_t peer, Done &done);
  void readCredits(Outgoing &outgoing, uint32_t peer);
  void sendCreditsOn(Incoming &incoming);
  bool readFrom(Incoming &incoming, Done &done);
  Bytes roomOf(Incoming &incoming);
  bool endPart(Incoming &incoming, Done &done);
  bool beginPayload(Incoming &incoming);
  void endPayload(Incoming &incoming, Done &done);

  // Functions of MeshThread.cpp.
  class MoverRole;
  void run();
  bool runIteration(std::optional<Deadline> &flushing);
  bool mayLeave(std::optional<Deadline> &flushing);
  std::vector<pollfd> polled() const;
  bool wantsCredits(const Outgoing &connection) const;
  void move(Lock &lock, const std::vector<pollfd> &found);
  void callBack(const Done &done);
  void throwIfAborted() const;
  void wake();

  const PeerTable peerTable;
  const Listener listener;
  const std::chrono::milliseconds silence;
  const std::function<void(uint32_t, const std::string &)> onLost;
  Socket wakeUp; ///< an eventfd that wakes the thread that moves bytes
  Socket resume; ///< an eventfd that wakes the mesh's own thread

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Outgoing> outgoing;
  std::vector<Incoming> incoming;
  Inboxes inboxes;
  std::vector<std::byte> sink;          ///< for discarded payload
  std::map<uint32_t, std::string> gone; ///< ranks that left or were lost
  /// Ranks that have left or were lost but are not in `gone` yet. First the
  /// callbacks for the messages of such a rank run, because one of these
  /// messages may say why the rank is gone.
  std::vector<Departure> departures;
  /// The deadline of each watched rank for its next bytes.
  std::map<uint32_t, Deadline> watched;
  std::chrono::steady_clock::time_point nextSign, nextAccept;
  /// Set while the process cannot accept a connection because it has too many
  /// open files. If this lasts until the deadline, the mesh fails.
  std::optional<Deadline> acceptRetryDeadline;
  /// Losses that `onLost` has not reported yet.
  std::vector<Departure> unreported;
  std::optional<std::string> aborted;
  bool isLeaving = false;
  /// The thread that moves bytes now, if any.
  std::optional<std::thread::id> mover;
  bool isDriven = false;      ///< `mover` is a thread in waitUntil
  bool leavesSockets = false; ///< only `mover` polls the sockets
  /// Whether there is a new socket that the mesh's own thread does not poll
  /// yet.
  bool hasNewSocket = false;
  std::thread thread; // last: it uses the other members
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_MESH_H
