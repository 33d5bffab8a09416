//===- DeviceOperations.h - Messages in one order on each device *- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages of a step as operations of devices that run one operation at a
// time, as NCCL does. A message, sent or received, begins only after the
// worker's previous message is complete. If the worker at the other end of a
// message is late, all later messages of the worker wait:
//
//    P0  F0 ─► P1   is under way until P1 has posted its receive;
//    P0  B0 ─► P2   begins after that, however early P2 is ready.
//
// All workers post messages in one global order: by the time at which, without
// this rule, the actions that produce the messages end. So workers cannot wait
// for each other in a cycle. If a worker has several sends without an action
// between them, these sends and the first receive after them form one
// operation. No post after that receive belongs to the operation, because the
// action that waits for the receive waits for the whole operation. A worker can
// receive a message while it runs an action.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICEOPERATIONS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICEOPERATIONS_H

#include "compiler/schedule/simulate/StepGraph.h"

namespace chimera::schedule {

struct DeviceOperations {
  /// A message. `sends` and `receives` are the operations of its two ends.
  struct Transfer {
    int64_t message;  ///< id of the action that produces it
    int32_t receiver; ///< worker
    int64_t flight;
    int32_t sends = -1, receives = -1;
  };
  /// An operation. It takes effect when the worker's previous operation is
  /// complete and its own sends have left the worker. It is complete when all
  /// its messages are: each is in flight after both of its ends have taken
  /// effect.
  struct Operation {
    int32_t begin, end; ///< the range of its posts
    int32_t sends = 0;  ///< number of its posts that are sends
    bool isFirst;       ///< of its worker
    int32_t next = -1;  ///< the next operation of its worker
  };

  std::span<const int32_t> transfersOf(const Operation &operation) const {
    return std::span(posts).subspan(operation.begin,
                                    operation.end - operation.begin);
  }

  std::vector<Transfer> transfers;
  std::vector<Operation> operations;
  std::vector<int32_t> posts;      ///< indices of transfers
  std::vector<int32_t> transferOf; ///< by id of the producing action, or -1
};

/// The operations of all workers. Places sends and receives in the same way as
/// the passes chimera-communicate and chimera-place-messages. `timing` is the
/// timing without the rule above. Takes linear time except for sorting.
/// Requires a valid schedule and a complete timing of it.
DeviceOperations deviceOperationsOf(const StepGraph &graph,
                                    const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_DEVICEOPERATIONS_H
