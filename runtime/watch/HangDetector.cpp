//===- HangDetector.cpp - Detects ranks that hang -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/HangDetector.h"

using namespace chimera::runtime;

HangDetector::HangDetector(const StatusPage &page,
                           std::chrono::milliseconds timeout)
    : page(page), limit(watcherTimeout(timeout)),
      seen(page.ranks(), {0, Deadline(limit)}) {}

std::optional<uint32_t> HangDetector::find() {
  for (uint32_t rank = 0; rank < seen.size(); ++rank) {
    const Status &status = page.of(rank);
    auto state = status.state.load();
    int64_t since = status.since.load();
    // Limit the time in these states. In the states after the last step, the
    // time is not limited here: saving may take long, and waits for other ranks
    // have their own timeouts.
    bool counts = state == Status::Absent || state == Status::Starting ||
                  state == Status::Running || state == Status::Evaluating;
    if (!counts || since != seen[rank].since)
      seen[rank] = {since, Deadline(limit)};
    else if (seen[rank].patience.passed())
      return rank;
  }
  return std::nullopt;
}
