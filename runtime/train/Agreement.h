//===- Agreement.h - Whether all ranks run the same -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process of a job reads its own program, data and options. Where they
// differ, as with an old file on one host, a run would hang or, worse, end with
// numbers that nobody asked for.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_AGREEMENT_H
#define CHIMERA_RUNTIME_TRAIN_AGREEMENT_H

#include "runtime/control/Control.h"

#include <string>
#include <vector>

namespace chimera::runtime {

/// A value that must be the same at every rank.
struct Shared {
  std::string name; ///< as an error calls it: "program"
  uint64_t value;   ///< or a digest of it
};

/// Compares the values of all ranks at rank 0. Every rank must give the same
/// names in the same order. Throws std::runtime_error at rank 0 if some differ,
/// and names the first rank that has another value, and which one.
void checkAgreement(Control &control, const std::vector<Shared> &shared,
                    std::chrono::milliseconds timeout);

/// To be called by all ranks, each with what it found wrong, empty if nothing.
/// Throws std::runtime_error at rank 0 with the fault of the lowest rank that
/// has one.
void checkFaults(Control &control, const std::string &fault,
                 std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_AGREEMENT_H
