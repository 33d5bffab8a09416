//===- Session.h - This process as a rank of an MPI job ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without MPI's header, so that whoever includes this needs none.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_MPI_SESSION_H
#define CHIMERA_RUNTIME_TRANSPORT_MPI_SESSION_H

#include "runtime/transport/Transport.h"

namespace chimera::runtime {

/// MPI from MPI_Init to MPI_Finalize; one object in a process's life. All calls
/// are made by the thread that makes it.
class MpiSession {
public:
  /// Throws std::runtime_error where MPI does not start.
  MpiSession();
  /// Waits, without spinning, until every rank is here. After a failure leave
  /// by _exit instead: the others may never come.
  ~MpiSession();
  MpiSession(const MpiSession &) = delete;
  MpiSession &operator=(const MpiSession &) = delete;

  uint32_t rank() const;
  uint32_t ranks() const;

  /// The ranks on this host, ascending, this one included.
  std::vector<uint32_t> hostRanks() const;

  /// A transport over all ranks. Every rank makes (and destroys) its transports
  /// in the same order; each has message streams of its own.
  std::unique_ptr<Transport> makeTransport() const;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRANSPORT_MPI_SESSION_H
