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

/// A call of ncclCommSplit by all ranks of a communicator.
struct Split {
  struct RequestedCommunicator {
    int color, key, rank, device;
    bool blocks;
  };
  std::vector<RequestedCommunicator> requests;
  std::vector<std::shared_ptr<Member>> made; ///< by old rank, when all came
};

/// The state that all ranks of a communicator share.
struct Clique {
  explicit Clique(int ranks)
      : devices(static_cast<size_t>(ranks), kAbsent), missing(ranks) {}
  static constexpr int kAbsent = -1;

  int ranks() const { return static_cast<int>(devices.size()); }

  std::mutex mutex; ///< guards the members below
  std::condition_variable changed;
  std::vector<int> devices;
  int missing; ///< ranks that have not called yet
  std::string refusal = {};
  int finalized = 0;
  /// Messages that have been launched only at one end, by sender and receiver.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<PendingOperation>>>
      halves;
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

/// One rank's communicator.
struct Member {
  std::shared_ptr<Clique> clique;
  int rank, device;
  bool blocks;
  Health *health;
  uint32_t number = 0;

  std::mutex mutex = {}; ///< guards the members below
  uint64_t collectives = 0, splits = 0, launches = 0;
  std::shared_ptr<Signal> ended = nullptr; ///< of the last operation
  std::vector<Request> pending = {};
  int looks = 0; ///< after so many the pending ones are launched
  std::shared_ptr<Split> split = nullptr;
  ncclComm_t *splitTo = nullptr;
  bool isFinal = false;
};

/// All communicators.
struct Registry {
  std::mutex mutex; ///< guards the members below
  std::map<ncclComm_t, std::shared_ptr<Member>> members;
  std::deque<Health> healths;
  std::map<std::string, std::shared_ptr<Clique>> beginnings; ///< by unique id
  uint64_t ids = 0;
  std::string lastError;
};
Registry &registry();

/// Records why a call returns `result`. Returns `result`.
ncclResult_t refuse(ncclResult_t result, const std::string &why);

/// Null if the handle is not a communicator.
std::shared_ptr<Member> find(ncclComm_t handle);
/// The name in records: "comm 2".
std::string nameOf(ncclComm_t handle);
std::shared_ptr<Member> makeMember(std::shared_ptr<Clique> clique, int rank,
                                   int device, bool blocks);
/// Makes it a communicator that calls can name. Null gives null.
ncclComm_t adopt(const std::shared_ptr<Member> &member);
void forget(ncclComm_t handle);

/// The result of ncclCommGetAsyncError. Only a call with `isLook` changes the
/// state.
ncclResult_t stateOf(Member &member, bool isLook);
/// Finds a communicator and checks that it can be used.
ncclResult_t use(ncclComm_t handle, std::shared_ptr<Member> &member);

} // namespace chimera::runtime::test

#endif // CHIMERA_TEST_RUNTIME_CUDA_NCCL_COMMUNICATORS_H
