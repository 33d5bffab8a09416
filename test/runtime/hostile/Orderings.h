//===- Orderings.h - The effect of a missing wait ---------------*- C++ -*-===//
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
  uint32_t orderings = 0; ///< waits, and events that start operations
  uint32_t needed = 0;    ///< orderings that two uses of memory need
};

/// Runs a verified program on simulated devices with all orderings that the
/// interpreter makes, and then with each one left out. Compares the reports
/// with a graph: a run must be reported if and only if no path connects some
/// two uses of memory. Returns the differences, or an empty string.
std::string checkOrderings(const program::ProgramT &program,
                           OrderingCounts &counts);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_ORDERINGS_H
