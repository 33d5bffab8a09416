//===- Control.h - What ranks tell each other -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Host bytes between ranks, outside of the program: what they must agree on,
// votes, results, and the news that one of them has failed. Messages.h and
// Meeting.h are made of it.
//
// One object serves one rank and is called by one thread at a time, but for
// abort. Implementations: InProcess.h and tcp/. One conformance suite runs on
// all.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_CONTROL_H
#define CHIMERA_RUNTIME_CONTROL_CONTROL_H

#include "runtime/device/Bytes.h"
#include "runtime/system/WaitError.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chimera::runtime {

class Control {
public:
  virtual ~Control() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  /// The k-th message to a rank, which may be this one, is received by its k-th
  /// receive from this one, which must have the same size. `bytes` may be
  /// changed afterwards. Returns at once as long as no more than kUnread bytes
  /// of this rank's wait for that one to receive them; else waits until that is
  /// so. Throws WaitError when `timeout` passes first or the run is aborted.
  virtual void send(uint32_t to, ConstBytes bytes,
                    std::chrono::milliseconds timeout) = 0;
  static constexpr uint64_t kUnread = uint64_t(64) << 10;

  /// Waits for the message. Throws as send does, and std::invalid_argument
  /// where it has another size.
  virtual void receive(uint32_t from, Bytes bytes,
                       std::chrono::milliseconds timeout) = 0;

  /// To be called by all ranks together: this rank exchanges messages with
  /// `peers`, and they with it. A link to one of them that is cut ends the run,
  /// like the link to rank 0, although nobody may be waiting for a message on
  /// it. Throws std::runtime_error where a peer cannot be reached.
  virtual void watch(const std::vector<uint32_t> &peers) { (void)peers; }

  /// Makes every wait of every rank that can be reached throw. Any thread may
  /// call it, more than once; the first reason counts.
  virtual void abort(const std::string &reason) = 0;

  /// Has `handler` called with the reason when this rank or another aborts, or
  /// ends without a word: at once if that has happened, else on any thread,
  /// once. It replaces the one before, which is no longer called when this
  /// returns.
  virtual void onAbort(std::function<void(const std::string &)> handler) = 0;

  /// At the end of a run that fails: gives what this host has to say of its
  /// `ranks` ranks to the rank that writes for all hosts, and waits until it is
  /// written, at most some seconds. False where the caller has to write it: it
  /// is the only host, or nobody who writes can be reached. Works after an
  /// abort, once in a process, from any thread.
  virtual bool handIn(ConstBytes account, uint32_t ranks) {
    (void)account, (void)ranks;
    return false;
  }

  /// Has `write` called, on any thread, where this rank writes for all hosts,
  /// once, with the accounts that have come. It replaces the one before.
  using WriteAccounts =
      std::function<void(const std::vector<std::vector<std::byte>> &)>;
  virtual void onAccounts(WriteAccounts write) { (void)write; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_CONTROL_H
