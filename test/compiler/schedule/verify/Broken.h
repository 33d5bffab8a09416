//===- Broken.h - Schedules that break constraints --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_COMPILER_SCHEDULE_VERIFY_BROKEN_H
#define CHIMERA_TEST_COMPILER_SCHEDULE_VERIFY_BROKEN_H

#include "test/compiler/schedule/Schedules.h"

#include <ostream>
#include <span>

namespace chimera::schedule {

/// A valid schedule, a change, and all violations that the change causes: the
/// name of the constraint and the message. A message writes actions in short
/// form. F0.1 is the forward of stage 0 on micro-batch 1, and B, I, W and R are
/// the other kinds. With several pipelines, F0.1 also means "of the
/// micro-batch's pipeline". F0.0-1 is one forward over two micro-batches. B0.1a
/// is the first half of a backward.
struct Broken {
  const char *name;
  Case (*make)();
  std::vector<std::string> expected;
};

inline std::ostream &operator<<(std::ostream &os, const Broken &broken) {
  return os << broken.name;
}

/// GPipe with two stages and two micro-batches.
inline Case smallGpipe() { return makeCase("gpipe", 2, 2); }

/// Schedules with a flush and without recomputes. Each action covers one whole
/// micro-batch.
std::span<const Broken> brokenOrders();
/// Schedules with actions over two micro-batches or over half of one, with
/// recomputes, or with steps that overlap.
std::span<const Broken> brokenPieces();

/// The valid schedules that brokenOrders and brokenPieces change.
std::vector<Case> soundOrders();
std::vector<Case> soundPieces();

} // namespace chimera::schedule

#endif // CHIMERA_TEST_COMPILER_SCHEDULE_VERIFY_BROKEN_H
