//===- HangDetector.h - Detects ranks that hang -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A detector for ranks that compute forever, if all ranks are threads of one
// process. If other ranks wait for such a rank, their waits time out. But if
// all ranks compute, or if there is only one rank, no wait can time out. For
// this case, the thread that started the ranks uses this class.
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
  /// A detector for the ranks of `page`, which must outlive this object.
  /// `timeout` is the timeout of waits.
  HangDetector(const StatusPage &page, std::chrono::milliseconds timeout);

  /// Returns a rank that has been starting, or at the same instruction, for
  /// longer than the timeout plus half a second. None if there is no such rank.
  /// The half second lets a wait time out first, because the error message of a
  /// wait says more. Call this function several times a second.
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
