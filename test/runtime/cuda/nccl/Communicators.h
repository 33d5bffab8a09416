//===- Communicators.h - Communicators and their ranks ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_CUDA_NCCL_COMMUNICATORS_H
#define CHIMERA_TEST_RUNTIME_CUDA_NCCL_COMMUNICATORS_H

#include "test/runtime/cuda/nccl/PendingOperation.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

namespace chimera::runtime::test {

struct Member;

/// The calls of ncclCommSplit by all ranks of a communicator that make one
/// split.
struct Split {
  struct Call {
    int color, key, rank, device;
    bool blocks;
  };
  std::vector<Call> calls;
  /// The new communicators, by old rank. Empty until all ranks have called.
  std::vector<std::shared_ptr<Member>> made;
};

/// The state that all ranks of a communicator share.
struct SharedCommunicator {
  explicit SharedCommunicator(int ranks)
      : devices(static_cast<size_t>(ranks), kAbsent), missing(ranks) {}
  static constexpr int kAbsent = -1;

  int ranks() const { return static_cast<int>(devices.size()); }

  std::mutex mutex; ///< guards the members below
  std::condition_variable changed;
  std::vector<int> devices;
  int missing; ///< number of ranks that have not joined
  std::string refusal = {};
  int finalized = 0;
  /// Messages of which only one end has been launched, by sender and receiver.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<PendingOperation>>>
      unmatchedMessages;
  /// Collectives, each with the number of ranks that have launched it.
  std::map<uint64_t, std::pair<int, std::shared_ptr<PendingOperation>>>
      collectives;
  std::map<uint64_t, std::shared_ptr<Split>> splits;
};

/// The arguments of a send, a receive or a collective.
struct Request {
  Part part;
  bool isMessage, isSend;
  int peer;
  cudaStream_t stream;
};

/// The communicator of one rank, to which an ncclComm_t refers.
struct Member {
  std::shared_ptr<SharedCommunicator> shared;
  int rank, device;
  bool blocks;
  Health *health;
  uint32_t number = 0;

  std::mutex mutex = {}; ///< guards the members below
  uint64_t collectives = 0, splits = 0, launches = 0;
  /// Raised when the last operation ends.
  std::shared_ptr<Signal> ended = nullptr;
  std::vector<Request> pending = {};
  int queriesUntilLaunch = 0; ///< queries left until `pending` is launched
  std::shared_ptr<Split> split = nullptr;
  ncclComm_t *splitTo = nullptr;
  bool isFinal = false;
};

/// All communicators of this process.
struct Registry {
  std::mutex mutex; ///< guards the members below
  std::map<ncclComm_t, std::shared_ptr<Member>> members;
  std::deque<Health> healths;
  /// Communicators that some ranks have not joined yet, by unique id.
  std::map<std::string, std::shared_ptr<SharedCommunicator>> beginnings;
  uint64_t ids = 0;
  std::string lastError;
};
Registry &registry();

/// Records why a call returns `result`, for ncclGetLastError. Returns `result`.
ncclResult_t refuse(ncclResult_t result, const std::string &why);

/// The communicator of a handle. Null if there is none.
std::shared_ptr<Member> find(ncclComm_t handle);
/// The name of a communicator in records, for example "comm 2".
std::string nameOf(ncclComm_t handle);
std::shared_ptr<Member> makeMember(std::shared_ptr<SharedCommunicator> shared,
                                   int rank, int device, bool blocks);
/// Registers a communicator. Returns the handle by which calls refer to it.
/// Returns null for null.
ncclComm_t adopt(const std::shared_ptr<Member> &member);
void forget(ncclComm_t handle);

/// The state that ncclCommGetAsyncError returns. With `mayAdvance` (a call by
/// ncclCommGetAsyncError itself), also lets a non-blocking communicator
/// advance: it may complete a split or launch its pending operations.
ncclResult_t stateOf(Member &member, bool mayAdvance);
/// Finds a communicator. Returns an error if it does not exist or cannot be
/// used now.
ncclResult_t use(ncclComm_t handle, std::shared_ptr<Member> &member);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_COMMUNICATORS_H
