//===- Communicators.h - The communicators of a rank ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One of all ranks, and those that are split from it, which all ranks make in
// the same order. NCCL never blocks the host here: a call that has not ended
// yet is asked after until it has, or the run fails.
//
// One thread makes and uses them, another looks for errors and aborts them, for
// which any may ask.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H
#define CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H

#include "runtime/channel/nccl/Calls.h"
#include "runtime/control/Control.h"
#include "runtime/device/cuda/Device.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace chimera::runtime::nccl {

class Communicators {
public:
  /// Makes the one of all ranks of `control`, which call this together. Rank 0
  /// tells the others where they meet. Throws WaitError where they do not come
  /// within `timeout` or the run is aborted, and what NCCL says.
  Communicators(cuda::CudaDevice &device, Control &control,
                std::chrono::milliseconds timeout);
  /// Ends them, together with the other ranks'; at once where the device has
  /// failed or an exception is under way.
  ~Communicators();

  ncclComm_t all() const { return made.front(); }
  /// One of `members`, ascending, in which each has its place among them as its
  /// rank. All ranks call it together; it is null at others.
  ncclComm_t split(std::span<const uint32_t> members);

  /// Makes calls that nothing may come between, for these communicators, and
  /// waits until what they launch is on its streams.
  void call(std::span<const ncclComm_t> used,
            const std::function<void()> &calls);

  /// Makes every later call of the device throw `reason`, and has what is under
  /// way at this rank end, for which it does not wait: that may take until
  /// other ranks of the process have aborted theirs. Any thread may call it,
  /// more than once.
  void abort(std::exception_ptr reason) noexcept;

private:
  void settle(ncclComm_t communicator, const char *call);
  void look();
  bool findError() noexcept;
  void end() noexcept;

  cuda::CudaDevice &device;
  const uint32_t self;
  const std::chrono::milliseconds timeout;
  std::mutex mutex;               ///< guards the calls and the rest
  std::vector<ncclComm_t> made;   ///< that of all ranks first
  ncclComm_t splitting = nullptr; ///< which NCCL writes when it is there
  bool isAborted = false;
  bool haveEnded = false; ///< because they were aborted
  bool ends = false;
  std::condition_variable changed;
  std::thread watch;
};

} // namespace chimera::runtime::nccl

#endif // CHIMERA_RUNTIME_CHANNEL_NCCL_COMMUNICATORS_H
