//===- StatusPage.h - What every rank is doing ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One entry for each rank, written by that rank before each instruction and
// readable by every rank of the host, also after the writer has died. For whom
// a rank waits follows from its instruction and the program (see Report.h).
//
// Ranks of one process share plain memory, processes of one host a file without
// a name, which is gone with the last of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_STATUSPAGE_H
#define CHIMERA_RUNTIME_WATCH_STATUSPAGE_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/Status.h"

#include <cstdint>
#include <vector>

namespace chimera::runtime {

class StatusPage {
public:
  /// A page in this process's memory.
  explicit StatusPage(uint32_t ranks);

  /// The page of this host's processes. The lowest of `hostRanks` makes it and
  /// tells the others over `control`; all of them must call this. A rank that
  /// cannot open the page, for example in a container, gets a page of its own,
  /// as if it were alone on its host. Throws std::runtime_error where there is
  /// no memory for the page, and whatever waits throw.
  StatusPage(Control &control, const std::vector<uint32_t> &hostRanks,
             std::chrono::milliseconds timeout);

  ~StatusPage();
  StatusPage(const StatusPage &) = delete;
  StatusPage &operator=(const StatusPage &) = delete;

  uint32_t ranks() const { return count; }
  /// The ranks whose processes share the page with this one, ascending, this
  /// one included.
  const std::vector<uint32_t> &sharing() const { return sharers; }
  Status &of(uint32_t rank) { return entries()[rank]; }
  const Status &of(uint32_t rank) const {
    return const_cast<StatusPage *>(this)->entries()[rank];
  }

  /// Whether `step`, not the first, may begin. Every rank asks before it begins
  /// a step, in order. Once askToStop was called no rank begins a step that
  /// none had begun: all stop after the same one.
  bool mayBegin(uint64_t step);
  /// Any thread may call it, more than once.
  void askToStop();
  bool askedToStop() const;

  /// True for the first caller on the host: it alone reports. Its `exitStatus`
  /// is the one with which all processes leave.
  bool claimReport(int exitStatus);
  int exitStatus() const;
  /// The process that reports sets this when its report is written.
  void setReported();
  bool reported() const;

private:
  struct Head;
  Head &head() const { return *static_cast<Head *>(memory); }
  Status *entries() const;
  void map(int file);
  void publish(int file, uint32_t self);

  uint32_t count;
  uint64_t bytes;
  std::vector<uint32_t> sharers;
  void *memory = nullptr;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_STATUSPAGE_H
