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
    // The time in these states is limited. After its last step a rank saves, or
    // waits for other ranks with a timeout for each wait, so the states after
    // the last step are not limited here. Evaluation is.
    bool counts = state == Status::Absent || state == Status::Starting ||
                  state == Status::Running || state == Status::Evaluating;
    if (!counts || since != seen[rank].since)
      seen[rank] = {since, Deadline(limit)};
    else if (seen[rank].patience.passed())
      return rank;
  }
  return std::nullopt;
}
