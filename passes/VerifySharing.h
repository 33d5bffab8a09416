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

/// Checks a pipeline before the pass `project`: workers may share nothing but
/// channels.
///
/// - Every op must name its worker and use no value of another worker.
/// - Every transfer has exactly one wait.
/// - Channels match, and verifySections succeeds.
/// - All-reduces may use values of all workers, unless `isSplit` says that they
///   are split into starts and waits.
///
/// Fails and reports every violation. If a section does not have the
/// loop-carried values of all replicas as arguments and yield them, reports
/// only that.
mlir::LogicalResult verifySharing(PipelineOp pipeline, bool isSplit);

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFYSHARING_H
