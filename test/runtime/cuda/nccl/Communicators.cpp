//===- Communicators.cpp - Communicators and their ranks ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/nccl/Communicators.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Gpu.h"
#include "test/runtime/cuda/SoftwareGpu.h"
#include "test/runtime/cuda/nccl/Launch.h"

using namespace chimera::runtime;
using namespace chimera::runtime::test;

Registry &test::registry() {
  static Registry *all = new Registry;
  return *all;
}

ncclResult_t test::refuse(ncclResult_t result, const std::string &why) {
  std::lock_guard lock(registry().mutex);
  registry().lastError = why;
  return result;
}

std::shared_ptr<Member> test::find(ncclComm_t handle) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().members.find(handle);
  return found == registry().members.end() ? nullptr : found->second;
}

std::string test::nameOf(ncclComm_t handle) {
  std::shared_ptr<Member> member = find(handle);
  return member ? text("comm ", member->number) : "comm ?";
}

std::shared_ptr<Member>
test::makeMember(std::shared_ptr<SharedCommunicator> shared, int rank,
                 int device, bool blocks) {
  std::lock_guard lock(registry().mutex);
  Health *health = &registry().healths.emplace_back();
  return std::shared_ptr<Member>(
      new Member{std::move(shared), rank, device, blocks, health});
}

ncclComm_t test::adopt(const std::shared_ptr<Member> &member) {
  if (!member)
    return nullptr;
  if (member->number == 0)
    member->number = newNumber("comm");
  auto handle = reinterpret_cast<ncclComm_t>(member.get());
  std::lock_guard lock(registry().mutex);
  registry().members[handle] = member;
  return handle;
}

void test::forget(ncclComm_t handle) {
  std::lock_guard lock(registry().mutex);
  registry().members.erase(handle);
}

size_t test::liveCommunicators() {
  std::lock_guard lock(registry().mutex);
  return registry().members.size();
}

ncclResult_t test::stateOf(Member &member, bool mayAdvance) {
  {
    std::lock_guard lock(member.health->mutex);
    if (member.health->error)
      return member.health->error;
  }
  std::lock_guard lock(member.mutex);
  {
    std::lock_guard sharedLock(member.shared->mutex);
    if (member.shared->missing > 0)
      return ncclInProgress;
    if (!member.shared->refusal.empty())
      return ncclInvalidUsage;
    if (member.split) {
      if (!mayAdvance || member.split->made.empty())
        return ncclInProgress;
      *member.splitTo =
          adopt(member.split->made[static_cast<size_t>(member.rank)]);
      member.split = nullptr;
    }
    if (member.isFinal && (member.shared->finalized < member.shared->ranks() ||
                           (member.ended && !member.ended->reached())))
      return ncclInProgress;
  }
  if (!member.pending.empty()) {
    if (!mayAdvance || --member.queriesUntilLaunch > 0)
      return ncclInProgress;
    launch(member, std::exchange(member.pending, {}));
  }
  return ncclSuccess;
}

ncclResult_t test::use(ncclComm_t handle, std::shared_ptr<Member> &member) {
  member = find(handle);
  if (!member)
    return refuse(ncclInvalidArgument, "no such communicator");
  ncclResult_t state = stateOf(*member, false);
  if (state == ncclInProgress)
    return refuse(ncclInvalidArgument,
                  "Attempt to use communicator before the previous operation "
                  "returned ncclSuccess");
  if (!state && failure())
    return refuse(ncclUnhandledCudaError, "CUDA has failed");
  return state;
}
