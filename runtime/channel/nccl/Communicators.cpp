//===- Communicators.cpp - NCCL communicators of a rank -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Communicators.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace chimera::runtime;
using namespace chimera::runtime::nccl;

namespace {
constexpr std::chrono::milliseconds kBetweenLooks(50);
constexpr uint64_t kLooksWithoutNap = 1000;
constexpr std::chrono::microseconds kNap(100);

ncclConfig_t withoutBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// Returns the identifier that rank 0 creates and sends to all ranks.
ncclUniqueId exchangeId(Control &control, std::chrono::milliseconds timeout) {
  ncclUniqueId id{};
  Bytes bytes = std::as_writable_bytes(std::span(&id, 1));
  if (control.rank() > 0) {
    control.receive(0, bytes, timeout);
    return id;
  }
  expect(ncclGetUniqueId(&id), "ncclGetUniqueId");
  for (uint32_t rank = 1; rank < control.ranks(); ++rank)
    control.send(rank, bytes, timeout);
  return id;
}

/// Aborts all communicators as one NCCL group. NCCL then signals all of them
/// before it frees the memory of any of them. Freeing GPU memory waits for all
/// operations on the GPU. If the communicators were aborted one by one, that
/// wait could last forever, because of an operation of a communicator that has
/// not been signalled yet.
void abortAll(const std::vector<ncclComm_t> &communicators) noexcept {
  (void)ncclGroupStart();
  for (ncclComm_t communicator : communicators)
    (void)ncclCommAbort(communicator);
  (void)ncclGroupEnd();
}
} // namespace

void chimera::runtime::nccl::expect(ncclResult_t result, const char *call,
                                    ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress)
    return;
  std::string message =
      std::string("NCCL failed: ") + call + ": " + ncclGetErrorString(result);
  const char *more = ncclGetLastError(communicator);
  if (more && *more)
    message += std::string(": ") + more;
  throw std::runtime_error(message);
}

Communicators::Communicators(cuda::CudaDevice &device, Control &control,
                             std::chrono::milliseconds timeout)
    : device(device), self(control.rank()), timeout(timeout) {
  device.makeCurrent();
  ncclUniqueId id = exchangeId(control, timeout);
  ncclConfig_t config = withoutBlocking();
  ncclComm_t all = nullptr;
  expect(ncclCommInitRankConfig(&all, static_cast<int>(control.ranks()), id,
                                static_cast<int>(self), &config),
         "ncclCommInitRankConfig");
  made.push_back(all);
  try {
    waitUntilComplete(all, "ncclCommInitRankConfig");
  } catch (...) {
    abortAll(made);
    throw;
  }
  watch = std::thread([this] { watchErrors(); });
}

Communicators::~Communicators() {
  {
    std::lock_guard lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  watch.join();
  end();
}

void Communicators::end() noexcept {
  if (wereAborted)
    return;
  bool isWell = std::uncaught_exceptions() == 0;
  try {
    device.expectNoFailure();
    // Finalize in reverse order, so that a split communicator is finalized
    // before the communicator from which it was split.
    for (size_t i = made.size(); isWell && i-- > 0;) {
      expect(ncclCommFinalize(made[i]), "ncclCommFinalize", made[i]);
      waitUntilComplete(made[i], "ncclCommFinalize");
    }
  } catch (...) {
    isWell = false;
  }
  if (!isWell)
    return abortAll(made);
  for (size_t i = made.size(); i-- > 0;)
    (void)ncclCommDestroy(made[i]);
}

ncclComm_t Communicators::split(std::span<const uint32_t> members) {
  auto place = std::ranges::find(members, self);
  bool isMember = place != members.end();
  ncclConfig_t config = withoutBlocking();
  {
    std::lock_guard lock(mutex);
    device.expectNoFailure();
    splitting = nullptr;
    expect(ncclCommSplit(all(), isMember ? 0 : NCCL_SPLIT_NOCOLOR,
                         static_cast<int>(place - members.begin()), &splitting,
                         &config),
           "ncclCommSplit", all());
  }
  waitUntilComplete(all(), "ncclCommSplit");
  if (!isMember)
    return nullptr;
  std::unique_lock lock(mutex);
  const ncclComm_t part = splitting;
  if (!part || isAborted) {
    lock.unlock();
    device.expectNoFailure();
    throw std::runtime_error(
        "NCCL failed: ncclCommSplit returned no communicator");
  }
  made.push_back(part);
  lock.unlock();
  waitUntilComplete(part, "ncclCommSplit");
  return part;
}

void Communicators::callAsGroup(std::span<const ncclComm_t> used,
                                const std::function<void()> &calls) {
  {
    std::lock_guard lock(mutex);
    device.expectNoFailure();
    expect(ncclGroupStart(), "ncclGroupStart");
    try {
      calls();
    } catch (...) {
      (void)ncclGroupEnd(); // otherwise the group would stay open
      throw;
    }
    expect(ncclGroupEnd(), "ncclGroupEnd");
  }
  for (ncclComm_t communicator : used)
    waitUntilComplete(communicator, "ncclGroupEnd");
}

void Communicators::waitUntilComplete(ncclComm_t communicator,
                                      const char *call) {
  Deadline deadline(timeout);
  for (uint64_t looks = 0;; ++looks) {
    ncclResult_t state = ncclSuccess;
    {
      std::lock_guard lock(mutex);
      device.expectNoFailure();
      expect(ncclCommGetAsyncError(communicator, &state),
             "ncclCommGetAsyncError", communicator);
      expect(state, call, communicator);
    }
    if (state != ncclInProgress)
      return;
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut,
                      timeoutMessage(timeout, std::string(call) + " of NCCL"));
    // Give the call time: a non-blocking NCCL call runs on a thread of NCCL.
    if (looks < kLooksWithoutNap)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

void Communicators::watchErrors() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kBetweenLooks, [&] {
    return isStopping || isAborted;
  }) && !findError())
    ;
  if (!isAborted)
    return;
  // No thread uses the communicators any more: the failed device makes all
  // calls throw.
  const std::vector<ncclComm_t> all = made;
  wereAborted = true;
  lock.unlock();
  abortAll(all);
}

/// Checks for an asynchronous NCCL error. If there is one, requests the abort
/// and returns true.
bool Communicators::findError() noexcept {
  for (ncclComm_t communicator : made) {
    ncclResult_t state = ncclSuccess;
    try {
      expect(ncclCommGetAsyncError(communicator, &state),
             "ncclCommGetAsyncError", communicator);
      expect(state, "an operation", communicator);
    } catch (...) {
      device.fail(std::current_exception());
      isAborted = true;
    }
  }
  return isAborted;
}

void Communicators::abort(std::exception_ptr reason) noexcept {
  // Mark the device first. Otherwise operations that the abort ends would look
  // complete.
  device.fail(std::move(reason));
  {
    std::lock_guard lock(mutex);
    isAborted = true;
  }
  changed.notify_all();
}
