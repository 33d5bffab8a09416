//===- Channels.h - What is sent and received -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_CHANNELS_H
#define CHIMERA_PASSES_CHANNELS_H

#include "dialect/Chimera.h"

#include <map>
#include <vector>

namespace chimera {

/// Fails, with a diagnostic, where a transfer that `op` begins is not waited
/// for once.
mlir::LogicalResult verifyAwaited(mlir::Operation &op);

/// The posts of workers by channel, an ordered pair of a sender and a receiver:
/// the k-th send meets the k-th receive.
class Channels {
public:
  /// Notes what `op`, or what is in it if it is a group, posts.
  void note(mlir::Operation &op, uint32_t worker);

  /// Fails, and reports of each channel the first send and receive that meet
  /// and do not agree in type and label, or the first that meets none. In one
  /// block a send must stand before the wait of its receive.
  mlir::LogicalResult verify() const;

private:
  struct Posts {
    std::vector<PostSendOp> sends;
    std::vector<PostReceiveOp> receives;
  };
  std::map<std::pair<uint32_t, uint32_t>, Posts> channels;
};

} // namespace chimera

#endif // CHIMERA_PASSES_CHANNELS_H
