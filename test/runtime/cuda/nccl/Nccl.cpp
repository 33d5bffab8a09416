//===- Nccl.cpp - NCCL without a GPU --------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks are in this process. Operations are matched when they are launched.
// The k-th send from rank a to rank b matches the k-th receive at b from a. The
// k-th collective of a rank matches the k-th collective of every other rank.
// When the streams of all ranks have reached their part of an operation, the
// last of these streams moves the bytes.
//
// A non-blocking communicator launches some of its groups only during calls of
// ncclCommGetAsyncError.
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/nccl/Groups.h"
#include "test/runtime/cuda/nccl/MakeCommunicators.h"

#include <cstring>
#include <thread>

using namespace chimera::runtime::test;

template <typename Detail, typename Body>
static ncclResult_t ncclCall(const char *name, const Detail &detail,
                             const Body &body) {
  if (int error = beginCall(name, detail))
    return refuse(static_cast<ncclResult_t>(error), "this is a test");
  if (isInHostFunction)
    return refuse(ncclInvalidUsage, "called from a stream");
  return body();
}

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  constexpr const char *kTexts[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? kTexts[result]
                                                : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t handle) {
  static thread_local std::string text;
  {
    std::lock_guard lock(registry().mutex);
    text = registry().lastError;
  }
  if (std::shared_ptr<Member> member = find(handle)) {
    {
      std::lock_guard lock(member->shared->mutex);
      if (!member->shared->refusal.empty())
        text = member->shared->refusal;
    }
    std::lock_guard lock(member->health->mutex);
    if (member->health->error)
      text = member->health->text;
  }
  return text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  return ncclCall(
      "ncclGetUniqueId", [] { return ""; },
      [&] {
        *id = {};
        std::lock_guard lock(registry().mutex);
        std::memcpy(id->internal, &++registry().ids, sizeof registry().ids);
        return ncclSuccess;
      });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  return ncclCall(
      "ncclCommInitRankConfig", [&] { return text(rank, " of ", ranks); },
      [&] { return initialize(made, ranks, id, rank, config); });
}
ncclResult_t ncclCommInitRank(ncclComm_t *made, int ranks, ncclUniqueId id,
                              int rank) {
  return ncclCall(
      "ncclCommInitRank", [&] { return text(rank, " of ", ranks); },
      [&] { return initialize(made, ranks, id, rank, nullptr); });
}
ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key,
                           ncclComm_t *made, ncclConfig_t *config) {
  return ncclCall(
      "ncclCommSplit",
      [&] { return text("color ", color, " key ", key, " ", nameOf(handle)); },
      [&] {
        std::shared_ptr<Member> member;
        ncclResult_t error = use(handle, member);
        return error ? error : split(*member, color, key, made, config);
      });
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return ncclCall(
      "ncclCommFinalize", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member;
        if (ncclResult_t error = use(handle, member))
          return error;
        {
          std::lock_guard lock(member->mutex);
          if (std::exchange(member->isFinal, true))
            return refuse(ncclInvalidArgument, "finalized twice");
          std::lock_guard sharedLock(member->shared->mutex);
          ++member->shared->finalized;
        }
        ncclResult_t state = ncclInProgress;
        while (member->blocks &&
               (state = stateOf(*member, false)) == ncclInProgress)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        return state;
      });
}
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return ncclCall(
      "ncclCommDestroy", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member;
        if (ncclResult_t error = use(handle, member))
          return error;
        std::shared_ptr<Signal> ended;
        {
          std::lock_guard lock(member->mutex);
          ended = member->ended;
        }
        if (ended)
          waitForSignal(*ended, *member->health);
        forget(handle);
        return ncclSuccess;
      });
}
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return ncclCall(
      "ncclCommAbort", [&] { return nameOf(handle); },
      [&] {
        std::shared_ptr<Member> member = find(handle);
        if (!member)
          return refuse(ncclInvalidArgument, "no such communicator");
        member->health->isAborted.store(true, std::memory_order_relaxed);
        {
          std::lock_guard lock(member->mutex);
          member->pending.clear();
          member->split = nullptr;
        }
        freeAborted(member);
        return ncclSuccess;
      });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *state) {
  if (int error = faultOf("ncclCommGetAsyncError"))
    return static_cast<ncclResult_t>(error);
  std::shared_ptr<Member> member = find(handle);
  if (!member)
    return refuse(ncclInvalidArgument, "no such communicator");
  *state = stateOf(*member, true);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int *count) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *count = member->shared->ranks();
  return error;
}
ncclResult_t ncclCommUserRank(const ncclComm_t handle, int *rank) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *rank = member->rank;
  return error;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int *device) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    *device = member->device;
  return error;
}

ncclResult_t ncclGroupStart() {
  return ncclCall(
      "ncclGroupStart", [] { return ""; },
      [] {
        startGroup();
        return ncclSuccess;
      });
}
ncclResult_t ncclGroupEnd() {
  return endGroup(
      static_cast<ncclResult_t>(beginCall("ncclGroupEnd", [] { return ""; })));
}

ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t handle, cudaStream_t stream) {
  return ncclCall(
      "ncclSend",
      [&] {
        return text(count * bytesOf(type), " to ", peer, " ", nameOf(handle),
                    " ", nameOf(stream));
      },
      [&] {
        return post(handle, {{"message", static_cast<const std::byte *>(source),
                              nullptr, count, type, 0, nullptr},
                             true,
                             true,
                             peer,
                             stream});
      });
}
ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t handle, cudaStream_t stream) {
  return ncclCall(
      "ncclRecv",
      [&] {
        return text(count * bytesOf(type), " from ", peer, " ", nameOf(handle),
                    " ", nameOf(stream));
      },
      [&] {
        return post(handle,
                    {{"message", nullptr, static_cast<std::byte *>(target),
                      count, type, 0, nullptr},
                     true,
                     false,
                     peer,
                     stream});
      });
}

static ncclResult_t collect(const char *name, const void *source, void *target,
                            size_t count, ncclDataType_t type, int root,
                            ncclComm_t handle, cudaStream_t stream) {
  return ncclCall(
      name,
      [&] {
        return text(count * bytesOf(type), " ", nameOf(handle), " ",
                    nameOf(stream));
      },
      [&] {
        return post(handle, {{name, static_cast<const std::byte *>(source),
                              static_cast<std::byte *>(target), count, type,
                              root, nullptr},
                             false,
                             false,
                             0,
                             stream});
      });
}
ncclResult_t ncclAllReduce(const void *source, void *target, size_t count,
                           ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t handle, cudaStream_t stream) {
  if (operation != ncclSum || !elementType(type))
    return refuse(ncclInvalidArgument, "the stand-in has no such sums");
  return collect("ncclAllReduce", source, target, count, type, 0, handle,
                 stream);
}
ncclResult_t ncclBroadcast(const void *source, void *target, size_t count,
                           ncclDataType_t type, int root, ncclComm_t handle,
                           cudaStream_t stream) {
  return collect("ncclBroadcast", source, target, count, type, root, handle,
                 stream);
}
ncclResult_t ncclAllGather(const void *source, void *target, size_t count,
                           ncclDataType_t type, ncclComm_t handle,
                           cudaStream_t stream) {
  return collect("ncclAllGather", source, target, count, type, 0, handle,
                 stream);
}

} // extern "C"
