//===- Posts.h - Placement of a worker's posts and waits --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_COMMUNICATE_POSTS_H
#define CHIMERA_PASSES_COMMUNICATE_POSTS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Fails with a diagnostic if `window` is too small for the worker. If the
/// worker uses a message before messages that were sent earlier, it must have
/// receives for all of them at the same time. Also fails if postInWindow would
/// fail.
mlir::LogicalResult checkWindow(WorkerOp worker, int32_t window);

/// Moves the receives of a projected worker so that on each channel at most
/// `window` of them are posted and not yet waited for. If a message overtakes
/// others, the channel gets as many as it needs (see checkWindow). Moves the
/// waits for sends later. Fails with a diagnostic if a receive does not have
/// exactly one wait in its section, or if posts are in groups already.
mlir::LogicalResult postInWindow(WorkerOp worker, int32_t window);

/// Puts adjacent posts of a worker into a group, if they are to and from the
/// same other worker and there are both sends and receives. Then none of these
/// posts waits for another.
void groupCrossings(WorkerOp worker);

/// Puts adjacent sends and the first receive after them into a group. The posts
/// may be to and from several workers.
void groupUpToReceives(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_COMMUNICATE_POSTS_H
