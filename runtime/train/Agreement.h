//===- Agreement.h - A check that all ranks run the same --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that all ranks of a job have the same program, data and options. Each
// process reads its own copy. If the copies differ, for example because of an
// old file on one host, the run would hang or give wrong numbers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_AGREEMENT_H
#define CHIMERA_RUNTIME_TRAIN_AGREEMENT_H

#include "runtime/control/Control.h"

#include <string>
#include <vector>

namespace chimera::runtime {

/// A value that must be the same at every rank.
struct AgreedValue {
  std::string name; ///< for error messages: "program"
  uint64_t value;   ///< the value or a digest of it
};

/// Compares the values of all ranks at rank 0. All ranks must call this, with
/// the same names in the same order. If a value differs, throws
/// std::runtime_error at rank 0. The message names the value and the first rank
/// with another value than rank 0.
void checkAgreement(Control &control,
                    const std::vector<AgreedValue> &agreedValues,
                    std::chrono::milliseconds timeout);

/// Throws only one error if several ranks have found errors. All ranks must
/// call this. `fault` is this rank's error message, or empty if it found no
/// error. If there are errors, throws std::runtime_error at rank 0, with the
/// message of the lowest rank that has one.
void throwFirstError(Control &control, const std::string &fault,
                     std::chrono::milliseconds timeout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_AGREEMENT_H
