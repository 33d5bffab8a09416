//===- Control.h - Control over TCP -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank watches its connection to rank 0, and rank 0 watches the
// connections to all ranks. If a process ends on any host, rank 0 notices this
// within moments. If a process is stopped or unreachable, rank 0 notices this
// within the timeout. Rank 0 tells all other ranks. Two ranks of different
// hosts that exchange messages in the program also watch each other, so they
// notice a broken link between them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CONTROL_TCP_CONTROL_H
#define CHIMERA_RUNTIME_CONTROL_TCP_CONTROL_H

#include "runtime/channel/tcp/Mesh.h"
#include "runtime/control/Control.h"

namespace chimera::runtime {

/// The control of a rank over TCP. It owns the connections of the rank. Another
/// rank may be silent for at most `silence`. The constructor throws
/// std::runtime_error if rank 0 cannot be reached (at rank 0: if any rank
/// cannot be reached). Destroy the object only after all ranks have connected.
class TcpControl final : public Control {
public:
  TcpControl(const tcp::PeerTable &peerTable, Listener listener,
             std::chrono::milliseconds silence);
  ~TcpControl() override;

  uint32_t rank() const override;
  uint32_t ranks() const override;
  void send(uint32_t to, ConstBytes bytes,
            std::chrono::milliseconds timeout) override;
  void receive(uint32_t from, Bytes bytes,
               std::chrono::milliseconds timeout) override;
  void watch(const std::vector<uint32_t> &peers) override;
  void abort(const std::string &reason) override;
  void onAbort(std::function<void(const std::string &)> handler) override;
  bool submitAccount(ConstBytes account, uint32_t ranks) override;
  void setReportWriter(ReportWriter write) override;

  /// The connections, for channels over TCP.
  tcp::Mesh &mesh();

private:
  struct State;
  const std::unique_ptr<State> state;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CONTROL_TCP_CONTROL_H
