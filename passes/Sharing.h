//===- Sharing.h - What workers share ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SHARING_H
#define CHIMERA_PASSES_SHARING_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks that the workers of a pipeline that is not projected yet share
/// nothing but channels and, unless they are split (`isSplit`) into starts and
/// waits, the all-reduces: every op names its worker and uses no value of
/// another one, every transfer is waited for once, channels agree, and what
/// verifySections checks. Fails, and reports all, but where sections do not
/// take and yield what replicas hand on that alone.
mlir::LogicalResult verifySharing(PipelineOp pipeline, bool isSplit);

} // namespace chimera

#endif // CHIMERA_PASSES_SHARING_H
