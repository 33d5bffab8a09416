//===- Channels.h - Matching sends and receives -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFY_CHANNELS_H
#define CHIMERA_PASSES_VERIFY_CHANNELS_H

#include "dialect/Chimera.h"

#include <map>
#include <vector>

namespace chimera {

/// Fails with a diagnostic unless each transfer that `op` begins has exactly
/// one wait.
mlir::LogicalResult verifyAwaited(mlir::Operation &op);

/// Checks that sends and receives match. It has the posts of all workers by
/// channel, which is an ordered pair (sender, receiver). The k-th send of a
/// channel matches its k-th receive.
class Channels {
public:
  /// Records the post `op`, or the posts inside it if it is a group.
  void add(mlir::Operation &op, uint32_t worker);

  /// Fails if a send and the matching receive differ in type or label, or if a
  /// post has no match. Reports the first such post of each channel. Also fails
  /// if a send and its receive are in one block, and the wait for the receive
  /// is before the send.
  mlir::LogicalResult verify() const;

private:
  struct Posts {
    std::vector<PostSendOp> sends;
    std::vector<PostReceiveOp> receives;
  };
  std::map<std::pair<uint32_t, uint32_t>, Posts> channels;
};

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFY_CHANNELS_H
