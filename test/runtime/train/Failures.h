//===- Failures.h - Runs that fail ------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_TRAIN_FAILURES_H
#define CHIMERA_TEST_RUNTIME_TRAIN_FAILURES_H

#include "runtime/train/Run.h"
#include "test/runtime/Timeouts.h"

#include <string>

namespace chimera::runtime::test {

/// Runs all ranks as threads, and returns the report on the rank that fails, or
/// an empty text if no rank fails. On a busy machine the other ranks may take
/// long to end. So the process does not end before them.
inline std::string failureOf(TrainingRun run) {
  run.patience = kPatience;
  try {
    runInProcess(run);
  } catch (const RunFailure &failure) {
    return failure.what();
  }
  return "";
}

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_TRAIN_FAILURES_H
