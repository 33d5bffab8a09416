//===- Broken.h - Schedules that break constraints --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_BROKEN_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_BROKEN_H

#include "test/compiler/schedule/Schedules.h"

#include <ostream>
#include <span>

namespace chimera::schedule {

/// A sound schedule, a change, and all violations that the change causes: the
/// name of the constraint and the message. F0.1 means "forward of pipeline <the
/// micro-batch's>, stage 0, micro-batch 1", likewise B, I, W and R. If there is
/// one pipeline, the message does not name it. F0.0-1 is one forward over two
/// micro-batches, B0.1a the first half of a backward.
struct Broken {
  const char *name;
  Case (*make)();
  std::vector<std::string> expected;
};

inline std::ostream &operator<<(std::ostream &os, const Broken &broken) {
  return os << broken.name;
}

/// Two stages, two micro-batches.
inline Case line() { return makeCase("gpipe", 2, 2); }

/// Schedules of whole micro-batches with a flush, without recomputes.
std::span<const Broken> brokenOrders();
/// Schedules with ranges and parts of micro-batches, recomputes, and steps that
/// overlap.
std::span<const Broken> brokenPieces();

/// The sound schedules that the lists above change.
std::vector<Case> soundOrders();
std::vector<Case> soundPieces();

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_BROKEN_H
