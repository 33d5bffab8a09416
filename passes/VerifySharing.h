//===- VerifySharing.h - Values and channels between workers ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFYSHARING_H
#define CHIMERA_PASSES_VERIFYSHARING_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks a pipeline before the pass `project`. Workers may share nothing but
/// channels:
///
/// - Every op must name its worker and use no value of another worker.
/// - Every transfer has exactly one wait.
/// - The sends and receives of each channel match, and verifySections succeeds.
/// - If `isSplit`, all-reduces must be split into starts and waits. Otherwise
///   an all-reduce may use values of all workers.
///
/// Fails and reports every violation. If the arguments of a section or the
/// values that it yields are not the loop-carried values of all replicas,
/// reports only this.
mlir::LogicalResult verifySharing(PipelineOp pipeline, bool isSplit);

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFYSHARING_H
