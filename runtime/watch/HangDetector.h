//===- HangDetector.h - Detects ranks that hang -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If one rank computes forever, the ranks that wait for it time out. If all
// ranks compute, or if there is only one rank, no wait can time out. For that
// case the thread that started the ranks uses this class.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_HANGDETECTOR_H
#define CHIMERA_RUNTIME_WATCH_HANGDETECTOR_H

#include "runtime/system/Deadline.h"
#include "runtime/watch/StatusPage.h"

#include <optional>

namespace chimera::runtime {

class HangDetector {
public:
  /// Observes the ranks of `page`, which must outlive this object.
  HangDetector(const StatusPage &page, std::chrono::milliseconds timeout);

  /// Returns a rank that has been starting, or at one instruction, for longer
  /// than the timeout and half a second. The half second lets a wait time out
  /// first, because its error says more. Call it several times a second.
  std::optional<uint32_t> find();

private:
  struct Seen {
    int64_t since;
    Deadline patience;
  };
  const StatusPage &page;
  const std::chrono::milliseconds limit;
  std::vector<Seen> seen; ///< by rank
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_HANGDETECTOR_H
