//===- Standstill.h - Ranks that do not move --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a rank computes for ever, the ranks that wait for it time out. If all
// ranks compute, or there is only one, no rank waits. Then the thread that
// started the ranks finds it with this class.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_STANDSTILL_H
#define CHIMERA_RUNTIME_WATCH_STANDSTILL_H

#include "runtime/system/Deadline.h"
#include "runtime/watch/StatusPage.h"

#include <optional>

namespace chimera::runtime {

class Standstill {
public:
  /// Of the ranks of `page`, which must outlive this.
  Standstill(const StatusPage &page, std::chrono::milliseconds timeout);

  /// A rank that has been starting, or at one instruction, for longer than the
  /// timeout and half a second. A wait times out half a second earlier, and
  /// says more. To be called several times a second.
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

#endif // CHIMERA_RUNTIME_WATCH_STANDSTILL_H
