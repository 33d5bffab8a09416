//===- Communicators.h - NCCL communicators of a rank -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The communicators of a rank: one of all ranks, and others that are split from
// it. All ranks create them in the same order. NCCL never blocks the host here:
// a call in progress is polled until it ends or the run fails.
//
// One thread creates and uses the communicators. Another thread checks them for
// errors and aborts them. Any thread may request an abort.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H

#include "runtime/control/Control.h"
#include "runtime/device/cuda/Device.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <nccl.h>
#include <span>
#include <thread>
#include <vector>

namespace chimera::runtime::nccl {

/// Throws std::runtime_error unless `result` is ncclSuccess or ncclInProgress.
/// The error names `call` and has NCCL's error text, for `communicator` if one
/// is given. If a call is in progress, use Communicators::waitUntilComplete to
/// wait for it.
void expect(ncclResult_t result, const char *call,
            ncclComm_t communicator = nullptr);

class Communicators {
public:
  /// Creates the communicator of all ranks of `control`. This is a collective
  /// call. Rank 0 sends the NCCL identifier to the others. Throws WaitError if
  /// the other ranks do not make the call within `timeout` or if the run is
  /// aborted, and std::runtime_error for an error of NCCL.
  Communicators(cuda::CudaDevice &device, Control &control,
                std::chrono::milliseconds timeout);
  /// Finalizes the communicators, together with the other ranks. If the device
  /// has failed or an exception is propagating, aborts them instead.
  ~Communicators();

  ncclComm_t all() const { return made.front(); }
  /// Creates a communicator of the ranks `members`, which must be ascending.
  /// The i-th member has rank i in it. This is a collective call of all ranks.
  /// Returns null at ranks that are not members.
  ncclComm_t split(std::span<const uint32_t> members);

  /// Runs `calls` as one NCCL group on the communicators `used`, and waits
  /// until NCCL has put the operations on their streams.
  void callAsGroup(std::span<const ncclComm_t> used,
                   const std::function<void()> &calls);

  /// Makes every later call of the device throw `reason`, and requests the
  /// abort of this rank's communicators. Does not wait for the abort: it may
  /// not end before other ranks of this process have aborted their
  /// communicators. Any thread may call this function, any number of times.
  void abort(std::exception_ptr reason) noexcept;

private:
  void waitUntilComplete(ncclComm_t communicator, const char *call);
  void watchErrors();
  bool findError() noexcept;
  void end() noexcept;

  cuda::CudaDevice &device;
  const uint32_t self;
  const std::chrono::milliseconds timeout;
  std::mutex mutex; ///< held during NCCL calls; guards the members below
  std::vector<ncclComm_t> made;   ///< the communicator of all ranks is first
  ncclComm_t splitting = nullptr; ///< written by NCCL when a split is complete
  bool isAborted = false;         ///< an abort was requested
  bool wereAborted = false;       ///< the watching thread aborts `made`
  bool isStopping = false;
  std::condition_variable changed;
  std::thread watch;
};

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H
