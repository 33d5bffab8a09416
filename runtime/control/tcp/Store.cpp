//===- Store.cpp - Entries in LibTorch's TCPStore -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/PeerExchange.h"

#include "runtime/system/Deadline.h"
#include "runtime/system/Socket.h"

#include <algorithm>
#include <c10/util/Logging.h>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

using namespace chimera::runtime;

namespace {
std::vector<uint8_t> bytesOf(const std::string &text) {
  return {text.begin(), text.end()};
}

/// Whether this process may open another file. LibTorch's store accepts no
/// connection if the process has too many open files, and does not report this.
bool mayOpenMore() {
  const Socket one(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return one || errno != EMFILE;
}

/// Splits concatenated entries, each of which ends with a newline.
std::vector<std::string> linesOf(const std::vector<uint8_t> &bytes) {
  std::vector<std::string> lines(1);
  for (uint8_t byte : bytes) {
    lines.back() += static_cast<char>(byte);
    if (byte == '\n')
      lines.emplace_back();
  }
  lines.pop_back();
  return lines;
}

std::string firstLine(const char *text) {
  std::string all = text;
  return all.substr(0, all.find('\n'));
}

std::string nameOf(const StoreAddress &address) {
  return address.host + " port " + std::to_string(address.port);
}

/// Calls the user's function once if a wait is long.
class Notice {
public:
  explicit Notice(const LongWaitHandler &tell) : tell(tell) {}
  /// `what` returns the text that the user's function gets.
  template <typename What> void tellIfDue(const What &what) {
    constexpr std::chrono::seconds kLong(5);
    if (!tell || std::chrono::steady_clock::now() - begin < kLong)
      return;
    std::exchange(tell, nullptr)(what());
  }

private:
  LongWaitHandler tell;
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

/// Waits until the host name has an address. If this rank does not serve the
/// store, also waits until a process listens at `address`. Returns the numeric
/// address of the store. LibTorch's own wait has worse error messages and may
/// exceed its timeout. If a name has several addresses and the first one does
/// not answer, LibTorch waits for two minutes before it tries the next one. So
/// it gets the address that answers, and not the name.
std::string awaitHost(const StoreAddress &address, bool isServer,
                      std::chrono::milliseconds timeout, Notice &notice) {
  constexpr std::chrono::milliseconds kTry(500), kPause(100);
  Deadline deadline(timeout);
  for (;;)
    try {
      if (!isServer)
        return peerAddressOf(
            connectTo(address.host, address.port, std::min(timeout, kTry)));
      expectKnownHost(address.host);
      return "127.0.0.1"; // the store listens on all addresses of this host
    } catch (const UnknownHost &) {
      throw;
    } catch (const std::runtime_error &error) {
      if (deadline.passed())
        throw;
      notice.tellIfDue([&] {
        return "still waiting for rank 0 at " + nameOf(address) + " (" +
               error.what() + ")";
      });
      std::this_thread::sleep_for(kPause);
    }
}

std::string anotherProcess(uint32_t rank, const std::string &where) {
  return "rank " + std::to_string(rank) + " at " + where +
         " is another process already: was it started twice, or does another "
         "run use this address?";
}

/// The error if another rank has reported its failure at the store.
class PeerFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The keys and values in the store where ranks find each other.
class Store {
public:
  /// Connects to the store, or serves it. Throws std::runtime_error.
  Store(const StoreAddress &address, uint32_t rank,
        std::chrono::milliseconds timeout, Notice &notice)
      : address(address), isServer(rank == 0 && !address.isServed) {
    c10d::TCPStoreOptions options;
    options.port = address.port;
    options.isServer = isServer;
    options.waitWorkers = false;
    options.timeout = timeout;
    // LibTorch's store logs warnings about hosts without a name and about
    // connections of other programs. These are no errors of the run, and real
    // errors are reported here. So its logging is off by default.
    static std::once_flag silenced;
    std::call_once(silenced, [] {
      if (!std::getenv("TORCH_CPP_LOG_LEVEL"))
        FLAGS_caffe2_log_level = c10::GLOG_FATAL;
    });
    const std::string host = awaitHost(address, isServer, timeout, notice);
    store = c10::make_intrusive<c10d::TCPStore>(host, options);
    // Other ranks may read the store after this rank has read it, so keep the
    // store until the process ends.
    static c10::intrusive_ptr<c10d::TCPStore> served;
    if (isServer)
      served = store;
  }

  /// Takes the number of the newest attempt to start this run. Returns whether
  /// this is another one than before. For a store that rank 0 serves, there is
  /// only attempt 0.
  bool takeNewestAttempt() {
    const int64_t newest = address.isServed ? store->add(attempts(), 0) : 0;
    return std::exchange(attempt, newest) != newest;
  }
  int64_t number() const { return attempt; }
  /// Begins the next attempt. Only rank 0 calls this.
  void beginAttempt() {
    if (address.isServed)
      attempt = store->add(attempts(), 1);
  }
  /// Chooses the attempt in which this rank reports that it cannot start. If
  /// the newest attempt has an entry of this rank, an earlier process of the
  /// rank was in it, and rank 0 has not begun the next one yet.
  void takeAttemptOfFailure(uint32_t rank) {
    if (rank == 0)
      return beginAttempt();
    takeNewestAttempt();
    if (address.isServed && (attempt == 0 || has({entry(rank)})))
      ++attempt;
  }

  std::string entry(uint32_t rank) const { return key(std::to_string(rank)); }
  std::string all() const { return key("all"); }
  std::string declined() const { return key("declined"); }

  bool has(const std::vector<std::string> &keys) { return store->check(keys); }
  std::vector<uint8_t> get(const std::string &key) { return store->get(key); }
  void set(const std::string &key, const std::string &text) {
    store->set(key, bytesOf(text));
  }
  /// Sets a key unless it is set. Returns whether this rank has set it.
  bool setFirst(const std::string &key, const std::string &text) {
    return store->compareSet(key, {}, bytesOf(text)) == bytesOf(text);
  }

  /// Makes all ranks that wait here, now or later, fail with `reason`. Has no
  /// effect if a reason is set already. If this takes long, calls `tell`.
  void reportFailure(const std::string &reason, const LongWaitHandler &tell) {
    setFirst(declined(), reason);
    // The store ends with this process. So keep it until all ranks that wait
    // have read the reason, and for a moment, for ranks that come later. A rank
    // that was killed while it waited never reads it. Pauses are counted, and
    // not time, because on a busy machine all ranks need longer.
    constexpr std::chrono::milliseconds kPause(50);
    constexpr int kLater = 40, kMost = 600; // pauses: 2 s and 30 s
    Notice notice(tell);
    for (int pause = 0; isServer && pause < kMost; ++pause) {
      if (pause >= kLater &&
          store->add(endedWaits(), 0) >= store->add(begunWaits(), 0))
        break;
      notice.tellIfDue([&] {
        return reason + "; still waiting until all other ranks have read this";
      });
      std::this_thread::sleep_for(kPause);
    }
  }

  /// Waits until all keys are set. Returns false if `timeout` passes first.
  /// Throws PeerFailed if a rank has reported a failure.
  template <typename What>
  bool await(const std::vector<std::string> &keys,
             std::chrono::milliseconds timeout, Notice &notice,
             const What &what) {
    constexpr std::chrono::milliseconds kLongestPause(200);
    std::chrono::milliseconds pause(1);
    Deadline deadline(timeout);
    const CountedWait counted(*this);
    while (!has(keys)) {
      if (has({declined()})) {
        std::vector<uint8_t> reason = get(declined());
        throw PeerFailed(std::string(reason.begin(), reason.end()));
      }
      if (deadline.passed())
        return false;
      notice.tellIfDue(what);
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    return true;
  }

private:
  /// Counts a wait of a rank that does not serve the store, when it begins and
  /// when it ends.
  class CountedWait {
  public:
    explicit CountedWait(const Store &of) : of(of) {
      if (!of.isServer)
        of.store->add(of.begunWaits(), 1);
    }
    ~CountedWait() {
      try {
        if (!of.isServer)
          of.store->add(of.endedWaits(), 1);
      } catch (const std::exception &) {
        // The store has ended, so nobody reads this number.
      }
    }

  private:
    const Store &of;
  };

  std::string begunWaits() const { return key("begun_waits"); }
  std::string endedWaits() const { return key("ended_waits"); }
  std::string attempts() const { return address.prefix + "chimera/attempts"; }
  std::string key(const std::string &name) const {
    return address.prefix + "chimera/" + std::to_string(attempt) + "/" + name;
  }

  const StoreAddress address;
  const bool isServer;
  int64_t attempt = 0; ///< from 1 if a launcher serves the store
  c10::intrusive_ptr<c10d::TCPStore> store;
};

/// Publishes the entry of a rank other than 0 in the newest attempt to start
/// the run, and returns all entries. The store of a launcher may still have the
/// entries of an earlier attempt, whose processes have ended, and rank 0 may
/// begin the next attempt later than this rank. So if the newest attempt has
/// another entry of this rank, or fails, waits for the next one.
std::vector<std::string> joinNewestAttempt(Store &store, uint32_t rank,
                                           const std::string &own,
                                           const std::string &where,
                                           std::chrono::milliseconds timeout,
                                           Notice &notice) {
  constexpr std::chrono::milliseconds kLongestPause(200);
  constexpr std::chrono::seconds kNextAttempt(5);
  std::chrono::milliseconds pause(1);
  Deadline deadline(timeout);
  std::optional<Deadline> patience; // with an attempt that had failed before
  bool isOwn = false;
  for (;;) {
    if (store.takeNewestAttempt()) {
      patience.reset();
      if (store.has({store.declined()}))
        patience.emplace(kNextAttempt);
      isOwn = store.setFirst(store.entry(rank), own);
    }
    if (isOwn && store.has({store.all()}))
      return linesOf(store.get(store.all()));
    if (isOwn && store.has({store.declined()}) &&
        (!patience || patience->passed())) {
      std::vector<uint8_t> reason = store.get(store.declined());
      throw PeerFailed(std::string(reason.begin(), reason.end()));
    }
    if (deadline.passed())
      throw std::runtime_error(
          isOwn || store.number() == 0
              ? timeoutMessage(timeout,
                               "rank 0 at " + where +
                                   " to send the addresses of all ranks: some "
                                   "may not have started")
              : anotherProcess(rank, where));
    notice.tellIfDue(
        [&] { return "still waiting at " + where + " for the other ranks"; });
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}
} // namespace

std::vector<std::string>
chimera::runtime::exchangeAtStore(const StoreAddress &address, uint32_t rank,
                                  uint32_t ranks, const std::string &own,
                                  std::chrono::milliseconds timeout,
                                  const LongWaitHandler &onLongWait) {
  const std::string where = nameOf(address);
  Notice notice(onLongWait);
  std::optional<Store> store;
  const bool joinsAttempts = address.isServed && rank != 0;
  bool isFirst = true;
  try {
    store.emplace(address, rank, timeout, notice);
    if (rank == 0)
      store->beginAttempt();
    if (!joinsAttempts)
      isFirst = store->setFirst(store->entry(rank), own);
  } catch (const std::exception &error) {
    throw std::runtime_error("cannot meet the other ranks at " + where + ": " +
                             firstLine(error.what()));
  }
  if (!isFirst)
    throw std::runtime_error(anotherProcess(rank, where));
  std::vector<std::string> keys;
  for (uint32_t other = 0; other < ranks; ++other)
    keys.push_back(store->entry(other));
  auto missing = [&] {
    std::string names;
    for (uint32_t other = 0; other < ranks; ++other)
      if (!store->has({keys[other]}))
        names += (names.empty() ? "" : ", ") + std::to_string(other);
    return names;
  };
  try {
    if (joinsAttempts)
      return joinNewestAttempt(*store, rank, own, where, timeout, notice);
    if (rank != 0) {
      // This rank cannot name the missing ranks; rank 0 does.
      if (!store->await({store->all()}, timeout, notice, [&] {
            return "still waiting at " + where + " for the other ranks";
          }))
        throw std::runtime_error(timeoutMessage(
            timeout, "rank 0 at " + where +
                         " to send the addresses of all ranks: some "
                         "may not have started"));
      return linesOf(store->get(store->all()));
    }
    if (!store->await(keys, timeout, notice, [&] {
          return "still waiting at " + where + " for ranks " + missing();
        })) {
      const std::string reason =
          "these ranks did not connect to " + where + ": " + missing() +
          (mayOpenMore() ? ""
                         : ", or rank 0 could not accept them: it has too many "
                           "open files, raise ulimit -n");
      store->reportFailure(reason, onLongWait);
      throw std::runtime_error(reason);
    }
    std::string joined;
    for (const std::string &key : keys) {
      std::vector<uint8_t> entry = store->get(key);
      joined.append(entry.begin(), entry.end());
    }
    store->set(store->all(), joined);
    return linesOf(bytesOf(joined));
  } catch (const PeerFailed &failed) {
    store->reportFailure(failed.what(), onLongWait); // for later ranks
    throw;
  } catch (const c10::Error &error) {
    throw std::runtime_error(
        "lost the connection to " + where +
        ", where ranks meet: has rank 0 or its launcher ended? (" +
        firstLine(error.what()) + ")");
  }
}

void chimera::runtime::reportFailureAtStore(const StoreAddress &address,
                                            uint32_t rank,
                                            const std::string &reason,
                                            const LongWaitHandler &onLongWait) {
  constexpr std::chrono::seconds kPatience(5);
  Notice nothing({});
  Store store(address, rank, kPatience, nothing);
  store.takeAttemptOfFailure(rank);
  store.reportFailure("rank " + std::to_string(rank) + " failed: " + reason,
                      onLongWait);
}
