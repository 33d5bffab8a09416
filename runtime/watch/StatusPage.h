//===- StatusPage.h - What every rank is doing ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The status page: memory with one entry (Status) for each rank. A rank writes
// its entry before each instruction. Every other rank of the same host can read
// the entry, even after the writer has died. The page does not have the ranks
// for which a rank waits, because they follow from its instruction and the
// program (awaitedBy in Report.h).
//
// If the ranks are threads of one process, the page is in plain memory. If they
// are processes of one host, the page is in a file without a name
// (SharedFile.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_STATUSPAGE_H
#define CHIMERA_RUNTIME_WATCH_STATUSPAGE_H

#include "runtime/control/Control.h"
#include "runtime/interpreter/Status.h"

#include <cstdint>
#include <vector>

namespace chimera::runtime {

/// The decision before a step: begin the step, save a checkpoint first, or stop
/// the run.
enum class StepDecision { Begin, Save, Stop };

class StatusPage {
public:
  /// A page in this process's memory.
  explicit StatusPage(uint32_t ranks);

  /// The page of this host's processes. All of `hostRanks` must call this
  /// constructor. The lowest rank makes the page and sends its location to the
  /// others over `control`. A rank that cannot open the page (for example in a
  /// container) gets its own page, as if it were alone on its host. Throws
  /// std::runtime_error if there is no memory for the page. Also throws the
  /// exceptions of waits of `control`.
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

  /// Returns the memory and the share of waiting of the ranks of this page, in
  /// their last steps.
  StepUse use() const;

  /// Decides what happens before `step`. Every rank calls this before each step
  /// except the first, in order, and all ranks get the same answers. After
  /// askToStop or askToSave, the answer is Stop or Save for the first step that
  /// no rank has begun.
  StepDecision decide(uint64_t step);
  /// The same for a rank without instructions, which would otherwise begin all
  /// steps at once: waits until another rank has begun `step`, or all must
  /// stop. Throws std::runtime_error if another rank fails meanwhile.
  StepDecision decideAfterOthers(uint32_t self, uint64_t step);
  /// Asks all ranks that share this page to stop. Any thread may call it, any
  /// number of times.
  void askToStop();
  bool askedToStop() const;
  /// Asks all ranks that share this page for a checkpoint. Any thread may call
  /// it, any number of times: all calls before the next decision to save lead
  /// to one checkpoint.
  void askToSave();

  /// Returns true for the first caller on the host, which must tell the user
  /// that the run writes no checkpoints.
  bool claimNotice();
  /// Returns true for the first caller on the host, which must write the
  /// report. All processes of the host exit with the `exitStatus` of the first
  /// caller.
  bool claimReport(int exitStatus);
  int exitStatus() const;
  /// The process that writes the report calls this when the report is written.
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
