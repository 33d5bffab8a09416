//===- Control.h - Messages between ranks -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between ranks that are not part of the program: agreement on the
// program and its options, votes, results, and the news that a rank has failed.
// The messages are in host memory. Messages.h (large messages, gathers, the
// barrier) uses only this interface.
//
// One object serves one rank. Only one thread at a time may call it, except for
// abort and submitAccount. Implementations are InProcess.h and tcp/Control.h.
// One conformance suite (test/runtime/control) runs on all implementations.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_CONTROL_H
#define CHIMERA_RUNTIME_CONTROL_CONTROL_H

#include "runtime/device/Bytes.h"
#include "runtime/system/Deadline.h"

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

  /// Sends a message to rank `to`, which may be this rank. The k-th send from
  /// one rank to another matches the k-th receive, which must have the same
  /// size. `bytes` is copied, so the caller may change it afterwards.
  ///
  /// Let U be the number of bytes from this rank, including this message, that
  /// `to` has not received. Returns at once if U is at most kUnread. Otherwise
  /// waits until it is. Throws WaitError if `timeout` passes first or if the
  /// run is aborted.
  virtual void send(uint32_t to, ConstBytes bytes,
                    std::chrono::milliseconds timeout) = 0;
  static constexpr uint64_t kUnread = uint64_t(64) << 10;

  /// Waits for the next message of rank `from`. Throws WaitError as `send`
  /// does, and std::invalid_argument if the message has another size.
  virtual void receive(uint32_t from, Bytes bytes,
                       std::chrono::milliseconds timeout) = 0;

  /// Announces the `peers` with which this rank exchanges messages while the
  /// program runs. This is a collective call of all ranks. From then on, a
  /// broken link to a peer aborts the run, even if no rank waits for a message
  /// on this link. (A broken link to rank 0 always aborts the run.) Throws
  /// std::runtime_error if a peer cannot be reached.
  virtual void watch(const std::vector<uint32_t> &peers) { (void)peers; }

  /// Makes every wait throw, on this rank and on all ranks that can be reached.
  /// Any thread may call it, any number of times. Only the first call sets the
  /// reason.
  virtual void abort(const std::string &reason) = 0;

  /// Sets the handler that is called once, with the reason, if any rank aborts
  /// the run or ends without a goodbye. If this has already happened, the
  /// handler is called at once. Otherwise any thread may call the handler.
  /// `handler` replaces the previous handler, which is not called any more
  /// after this function returns.
  virtual void onAbort(std::function<void(const std::string &)> handler) = 0;

  /// Called at the end of a failed run. `account` is this host's report on its
  /// `ranks` ranks. Gives it to the rank that writes the report of all hosts,
  /// and waits until this report is written, for at most some seconds. Returns
  /// false if the caller must write its own report: there is only one host, or
  /// no rank has written the report of all hosts in time. May be called once in
  /// a process, from any thread, also after an abort.
  virtual bool submitAccount(ConstBytes account, uint32_t ranks) {
    (void)account, (void)ranks;
    return false;
  }

  /// Sets the function that writes the report of all hosts. If this rank writes
  /// the report, the function is called once, on any thread, with the accounts
  /// that have arrived. `write` replaces the previous function.
  using ReportWriter =
      std::function<void(const std::vector<std::vector<std::byte>> &)>;
  virtual void setReportWriter(ReportWriter write) { (void)write; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_CONTROL_H
