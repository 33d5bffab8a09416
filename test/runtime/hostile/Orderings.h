//===- Orderings.h - Runs without one wait or event -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_ORDERINGS_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_ORDERINGS_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera::runtime::hostile {

struct OrderingCounts {
  uint32_t orderings = 0; ///< waits of queues, and events before posts
  uint32_t needed = 0;    ///< orderings without which two uses of memory race
};

/// Runs a verified program on simulated devices: once with all orderings that
/// the interpreter makes, and once without each single ordering. An ordering is
/// a wait of a queue for an operation, or an event that must pass before an
/// operation begins. Compares the reports of the devices with a graph of the
/// orderings. A run must be reported if and only if the graph has two
/// conflicting uses of memory that no path connects. Returns the first
/// difference, or an empty string.
std::string checkOrderings(const program::ProgramT &program,
                           OrderingCounts &counts);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_ORDERINGS_H
