//===- Launch.cpp - Launches operations on streams ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/nccl/Launch.h"
#include "test/runtime/cuda/SoftwareGpu.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

/// The operation to which a rank's request belongs. Creates it if no other rank
/// has launched its part so far.
static std::shared_ptr<PendingOperation>
join(SharedCommunicator &shared, Member &member, const Request &request) {
  std::lock_guard lock(shared.mutex);
  std::shared_ptr<PendingOperation> operation;
  if (request.isMessage) {
    const size_t end = request.isSend ? 0 : 1;
    auto &unmatched =
        shared.unmatchedMessages[request.isSend
                                     ? std::pair(member.rank, request.peer)
                                     : std::pair(request.peer, member.rank)];
    if (unmatched.empty() || unmatched.front()->parts[end].name) {
      operation = std::make_shared<PendingOperation>(2);
      unmatched.push_back(operation);
    } else {
      operation = std::move(unmatched.front());
      unmatched.pop_front();
    }
    operation->parts[end] = request.part;
    return operation;
  }
  const uint64_t index = member.collectives++;
  auto &[launched, collective] = shared.collectives[index];
  if (!collective)
    collective = std::make_shared<PendingOperation>(shared.devices.size());
  operation = collective;
  operation->parts[static_cast<size_t>(member.rank)] = request.part;
  if (++launched == shared.ranks())
    shared.collectives.erase(index);
  return operation;
}

void test::launch(Member &member, const std::vector<Request> &requests) {
  std::vector<std::shared_ptr<PendingOperation>> operations;
  std::vector<cudaStream_t> streams;
  for (const Request &request : requests) {
    operations.push_back(join(*member.shared, member, request));
    if (!std::ranges::count(streams, request.stream))
      streams.push_back(request.stream);
  }
  // The first stream executes the operation. The other streams wait for its
  // end.
  auto ended = std::make_shared<Signal>();
  std::vector<std::shared_ptr<Signal>> before;
  if (std::shared_ptr<Signal> last = std::exchange(member.ended, ended))
    before.push_back(std::move(last));
  Health *health = member.health;
  for (size_t i = 1; i < streams.size(); ++i) {
    auto begun = std::make_shared<Signal>();
    before.push_back(begun);
    enqueueOn(streams[i], [health, begun = std::move(begun), ended] {
      begun->raise();
      waitForSignal(*ended, *health);
    });
  }
  enqueueOn(streams.front(), [health, operations = std::move(operations),
                              before = std::move(before),
                              ended = std::move(ended)] {
    bool isWell = std::ranges::all_of(
        before, [&](auto &signal) { return waitForSignal(*signal, *health); });
    if (isWell) {
      for (const std::shared_ptr<PendingOperation> &operation : operations)
        operation->arrive();
      for (const std::shared_ptr<PendingOperation> &operation : operations)
        if (!waitForSignal(operation->done, *health))
          operation->cancelOrWait();
    }
    ended->raise();
  });
}
