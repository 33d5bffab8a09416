//===- StatusPage.h - What every rank is doing ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The status page: memory with one entry for each rank of a host. A rank writes
// its entry before each instruction. Every other rank of the host can read it,
// even after the writer has died. The page does not store the ranks that a rank
// waits for: they follow from its instruction and the program (see Report.h).
//
// Ranks of one process share plain memory. Processes of one host share a file
// without a name, which disappears with the last of them.
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

  /// The page of this host's processes. A collective call of `hostRanks`: the
  /// lowest of them makes the page and tells the others over `control`. A rank
  /// that cannot open the page (in a container, for example) gets a page of its
  /// own, as if it were alone on its host. Throws std::runtime_error if there
  /// is no memory for the page, and throws what waits throw.
  StatusPage(Control &control, const std::vector<uint32_t> &hostRanks,
             std::chrono::milliseconds timeout);

  ~StatusPage();
  StatusPage(const StatusPage &) = delete;
  StatusPage &operator=(const StatusPage &) = delete;

  uint32_t ranks() const { return count; }
  /// The ranks whose processes share this page, ascending, including this rank.
  const std::vector<uint32_t> &sharingRanks() const { return sharers; }
  Status &of(uint32_t rank) { return entries()[rank]; }
  const Status &of(uint32_t rank) const {
    return const_cast<StatusPage *>(this)->entries()[rank];
  }

  /// Whether `step`, which is not the first, may begin. Every rank calls this
  /// before each step, in order. After askToStop, no rank begins a step that no
  /// rank has begun yet, so all ranks stop after the same step.
  bool mayBeginStep(uint64_t step);
  /// Any thread may call it, any number of times.
  void askToStop();
  bool askedToStop() const;

  /// Returns true for the first caller on the host: only that process reports.
  /// All processes of the host exit with its `exitStatus`.
  bool claimReport(int exitStatus);
  int exitStatus() const;
  /// The process that reports calls this after its report is written.
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
