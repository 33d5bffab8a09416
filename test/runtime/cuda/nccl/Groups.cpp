//===- Groups.cpp - A thread's calls within a group -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/nccl/Groups.h"
#include "test/runtime/cuda/Calls.h"
#include "test/runtime/cuda/Memory.h"
#include "test/runtime/cuda/Streams.h"
#include "test/runtime/cuda/nccl/Launch.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// The calls that this thread made between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<std::shared_ptr<Member>, std::vector<Request>>> all;
  std::vector<std::shared_ptr<Member>> aborted;
};
thread_local Group group;

/// Frees aborted communicators. As in NCCL, this frees memory of the GPU.
/// Freeing memory waits for everything that runs on this GPU and on the GPUs of
/// the communicator's other ranks, also for the operations of other
/// communicators.
void freeAllAborted() {
  for (const std::shared_ptr<Member> &aborted :
       std::exchange(group.aborted, {})) {
    std::vector<std::shared_ptr<Member>> neighbours;
    {
      std::lock_guard lock(registry().mutex);
      for (const auto &[handle, member] : registry().members)
        if (std::ranges::count(aborted->shared->devices, member->device))
          neighbours.push_back(member);
    }
    for (const std::shared_ptr<Member> &member : neighbours) {
      std::shared_ptr<Signal> last;
      {
        std::lock_guard lock(member->mutex);
        last = member->ended;
      }
      while (last && !last->waitFor(std::chrono::milliseconds(2)))
        ;
    }
    forget(reinterpret_cast<ncclComm_t>(aborted.get()));
  }
}

/// Launches the calls in this thread's group.
ncclResult_t launchGroup() {
  freeAllAborted();
  auto all = std::exchange(group.all, {});
  if (ncclResult_t error = std::exchange(group.error, ncclSuccess))
    return error;
  ncclResult_t result = ncclSuccess;
  for (auto &[member, requests] : all) {
    std::lock_guard lock(member->mutex);
    member->queriesUntilLaunch =
        member->blocks ? 0 : static_cast<int>((2 + member->launches++) % 3);
    if (member->queriesUntilLaunch == 0) {
      launch(*member, requests);
    } else {
      member->pending = std::move(requests);
      result = ncclInProgress;
    }
  }
  return result;
}

ncclResult_t check(const Member &member, const Request &request) {
  const Part &part = request.part;
  if (part.type < 0 || part.type >= ncclNumTypes)
    return refuse(ncclInvalidArgument, "unknown type");
  if (member.isFinal)
    return refuse(ncclInvalidArgument, "the communicator has been finalized");
  const int other = request.isMessage ? request.peer : part.root;
  if (other < 0 || other >= member.shared->ranks())
    return refuse(ncclInvalidArgument, text("no such rank: ", other));
  if (request.isMessage && other == member.rank && group.depth == 0)
    return refuse(ncclInvalidUsage, "a message to itself without a group");
  if (!request.stream || deviceOf(request.stream) != member.device)
    return refuse(ncclUnhandledCudaError,
                  "no stream of the communicator's device");
  const size_t bytes = bytesOf(part);
  const bool isGather = part.name == std::string("ncclAllGather");
  const auto ranks = static_cast<size_t>(member.shared->ranks());
  if (bytes > 0 &&
      ((part.source && !isInReach(member.device, part.source, bytes)) ||
       (part.target && !isInReach(member.device, part.target,
                                  isGather ? ranks * bytes : bytes)) ||
       (!part.source && !part.target)))
    return refuse(ncclInvalidArgument, "no memory of the device");
  return ncclSuccess;
}
} // namespace

bool test::isInGroup() { return group.depth > 0; }

void test::startGroup() { ++group.depth; }

ncclResult_t test::endGroup(ncclResult_t fault) {
  if (fault)
    group.error = fault;
  if (group.depth == 0)
    return refuse(ncclInvalidUsage, "no group");
  return --group.depth > 0 ? ncclSuccess : launchGroup();
}

ncclResult_t test::post(ncclComm_t handle, Request request) {
  std::shared_ptr<Member> member;
  ncclResult_t error = use(handle, member);
  if (!error)
    error = check(*member, request);
  if (error) {
    group.error = group.depth > 0 ? error : ncclSuccess;
    return error;
  }
  request.part.health = member->health;
  auto found = std::ranges::find(group.all, member,
                                 [](const auto &entry) { return entry.first; });
  if (found == group.all.end())
    found = group.all.insert(found, {member, {}});
  found->second.push_back(request);
  return group.depth > 0 ? ncclSuccess : launchGroup();
}

void test::freeAborted(std::shared_ptr<Member> member) {
  group.aborted.push_back(std::move(member));
  if (group.depth == 0)
    freeAllAborted();
}
