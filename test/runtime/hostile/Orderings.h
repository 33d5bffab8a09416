//===- Orderings.h - What a forgotten wait does -----------------*- C++ -*-===//
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
  uint32_t orderings = 0; ///< events that operations begin after, and waits
  uint32_t needed = 0;    ///< without which two uses of memory are not ordered
};

/// Runs a verified program on simulated devices without any one of the
/// orderings that the interpreter makes, and with all, and holds what is
/// reported against a graph of its own: a run is reported if and only if some
/// two uses of memory are connected by no path. Returns what differs, empty if
/// nothing does.
std::string checkOrderings(const program::ProgramT &program,
                           OrderingCounts &counts);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_ORDERINGS_H
