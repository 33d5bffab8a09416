//===- MakeCommunicators.cpp - Makes communicators ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/nccl/MakeCommunicators.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/nccl/Groups.h"

#include <algorithm>
#include <tuple>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
bool isValid(const ncclConfig_t *config) {
  return !config ||
         (config->magic == 0xcafebeef && config->size == sizeof *config &&
          (config->blocking == 0 || config->blocking == 1 ||
           config->blocking == NCCL_CONFIG_UNDEF_INT));
}

/// Makes the communicators of a split. Requires that all ranks have called
/// ncclCommSplit.
void finish(Split &split) {
  auto &calls = split.calls;
  std::ranges::sort(calls, {}, [](const Split::Call &call) {
    return std::tuple(call.color, call.key, call.rank);
  });
  split.made.resize(calls.size());
  for (size_t begin = 0, end; begin < calls.size(); begin = end) {
    for (end = begin; end < calls.size(); ++end)
      if (calls[end].color != calls[begin].color)
        break;
    if (calls[begin].color == NCCL_SPLIT_NOCOLOR)
      continue;
    auto shared =
        std::make_shared<SharedCommunicator>(static_cast<int>(end - begin));
    shared->missing = 0;
    for (size_t i = begin; i < end; ++i) {
      shared->devices[i - begin] = calls[i].device;
      split.made[static_cast<size_t>(calls[i].rank)] =
          makeMember(shared, static_cast<int>(i - begin), calls[i].device,
                     calls[i].blocks);
    }
  }
}
} // namespace

ncclResult_t test::initialize(ncclComm_t *made, int ranks,
                              const ncclUniqueId &id, int rank,
                              const ncclConfig_t *config) {
  *made = nullptr;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, "no device");
  if (ranks < 1 || rank < 0 || rank >= ranks || !isValid(config) || isInGroup())
    return refuse(ncclInvalidArgument, "invalid arguments");
  const std::string key(id.internal, sizeof id.internal);
  std::shared_ptr<SharedCommunicator> shared;
  {
    std::lock_guard lock(registry().mutex);
    std::shared_ptr<SharedCommunicator> &beginning = registry().beginnings[key];
    if (!beginning)
      beginning = std::make_shared<SharedCommunicator>(ranks);
    shared = beginning;
  }
  const bool blocks = !config || config->blocking != 0;
  std::shared_ptr<Member> member = makeMember(shared, rank, device, blocks);
  std::unique_lock lock(shared->mutex);
  int &own = shared->devices[static_cast<size_t>(rank)];
  if (shared->ranks() != ranks || own != SharedCommunicator::kAbsent)
    return refuse(ncclInvalidArgument, "ranks disagree on who is who");
  if (!gpu().sharesDevices && std::ranges::count(shared->devices, device))
    shared->refusal =
        text("Duplicate GPU detected : ranks have CUDA device ", device);
  own = device;
  if (--shared->missing == 0) {
    std::lock_guard registryLock(registry().mutex);
    registry().beginnings.erase(key);
  }
  shared->changed.notify_all();
  if (blocks) {
    shared->changed.wait(lock, [&] { return shared->missing == 0; });
    if (!shared->refusal.empty())
      return refuse(ncclInvalidUsage, shared->refusal);
  }
  *made = adopt(member);
  return blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t test::split(Member &member, int color, int key, ncclComm_t *made,
                         const ncclConfig_t *config) {
  *made = nullptr;
  if (color < NCCL_SPLIT_NOCOLOR || !isValid(config) || isInGroup())
    return refuse(ncclInvalidArgument, "invalid arguments");
  std::unique_lock memberLock(member.mutex);
  SharedCommunicator &shared = *member.shared;
  std::unique_lock lock(shared.mutex);
  const uint64_t index = member.splits++;
  std::shared_ptr<Split> &all = shared.splits[index];
  if (!all)
    all = std::make_shared<Split>();
  std::shared_ptr<Split> own = all;
  own->calls.push_back({color, key, member.rank, member.device,
                        config ? config->blocking != 0 : member.blocks});
  if (own->calls.size() == shared.devices.size()) {
    finish(*own);
    shared.splits.erase(index);
    shared.changed.notify_all();
  }
  if (member.blocks) {
    memberLock.unlock();
    shared.changed.wait(lock, [&] { return !own->made.empty(); });
    *made = adopt(own->made[static_cast<size_t>(member.rank)]);
    return ncclSuccess;
  }
  // NCCL may write `made` at any time until the communicator is ready again.
  member.split = std::move(own);
  member.splitTo = made;
  return ncclInProgress;
}
