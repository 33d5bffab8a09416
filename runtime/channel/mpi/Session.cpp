//===- Session.cpp - This process as a rank of an MPI job -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Session.h"

#include "runtime/channel/mpi/Backoff.h"
#include "runtime/channel/mpi/CallLock.h"
#include "runtime/channel/mpi/Calls.h"
#include "runtime/channel/mpi/Channels.h"
#include "runtime/system/Cores.h"

#include <algorithm>
#include <sys/prctl.h>

using namespace chimera::runtime;

namespace {
class RankSession final : public MpiSession {
public:
  explicit RankSession(MpiThreads threads);
  ~RankSession() override;
  RankSession(const RankSession &) = delete;
  RankSession &operator=(const RankSession &) = delete;

  uint32_t rank() const override { return self; }
  uint32_t ranks() const override { return size; }
  bool allowsProgressThread() const override { return severalThreads; }
  std::vector<uint32_t> hostRanks() const override;
  std::vector<std::string>
  allGatherTexts(const std::string &text) const override;
  std::unique_ptr<Channels>
  makeChannels(const MpiOptions &options) const override;

private:
  uint32_t self = 0, size = 0;
  bool severalThreads = false;
};
} // namespace

RankSession::RankSession(MpiThreads threads) {
  int wanted = threads == MpiThreads::Funneled     ? MPI_THREAD_FUNNELED
               : threads == MpiThreads::Serialized ? MPI_THREAD_SERIALIZED
                                                   : MPI_THREAD_MULTIPLE;
  int provided = 0;
  mpi::check(MPI_Init_thread(nullptr, nullptr, wanted, &provided),
             "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    throw std::runtime_error("expected an MPI with at least "
                             "MPI_THREAD_FUNNELED, got MPI_THREAD_SINGLE");
  severalThreads =
      threads != MpiThreads::Funneled && provided >= MPI_THREAD_SERIALIZED;
  mpi::serializeCalls(severalThreads && provided < MPI_THREAD_MULTIPLE);
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  self = static_cast<uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  size = static_cast<uint32_t>(number);
  mpi::Backoff::everyRankHasACore = hostRanks().size() <= findCores().host;
  // Waits nap for some tens of microseconds. By default the kernel may extend
  // each nap by 50 µs.
  prctl(PR_SET_TIMERSLACK, 1000);
}

RankSession::~RankSession() {
  // Wait for all ranks without spinning. MPI_Finalize would spin until all
  // ranks call it.
  MPI_Request barrier;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &barrier) == MPI_SUCCESS) {
    int flag = 0;
    mpi::Backoff backoff;
    while (MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
      backoff.pause();
  }
  MPI_Finalize();
}

std::vector<std::string>
RankSession::allGatherTexts(const std::string &text) const {
  if (text.size() > kText)
    throw std::invalid_argument("expected a text of at most " +
                                std::to_string(kText) + " bytes, got " +
                                std::to_string(text.size()));
  auto call = mpi::enter("MPI_Allgather");
  std::vector<char> own(kText + 1), all((kText + 1) * size);
  std::copy(text.begin(), text.end(), own.begin());
  mpi::check(MPI_Allgather(own.data(), kText + 1, MPI_CHAR, all.data(),
                           kText + 1, MPI_CHAR, MPI_COMM_WORLD),
             "MPI_Allgather");
  std::vector<std::string> texts;
  for (uint32_t rank = 0; rank < size; ++rank)
    texts.emplace_back(all.data() + rank * (kText + 1));
  return texts;
}

std::vector<uint32_t> RankSession::hostRanks() const {
  auto call = mpi::enter("MPI_Comm_split_type");
  MPI_Comm host;
  mpi::check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                 MPI_INFO_NULL, &host),
             "MPI_Comm_split_type");
  int onHost = 0;
  MPI_Comm_size(host, &onHost);
  std::vector<uint32_t> ranks(onHost);
  mpi::check(MPI_Allgather(&self, 1, MPI_UINT32_T, ranks.data(), 1,
                           MPI_UINT32_T, host),
             "MPI_Allgather");
  MPI_Comm_free(&host);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::unique_ptr<Channels>
RankSession::makeChannels(const MpiOptions &options) const {
  if (options.progressThread && !allowsProgressThread())
    throw std::runtime_error(
        "a progress thread needs an MPI with MPI_THREAD_SERIALIZED or "
        "MPI_THREAD_MULTIPLE: run with --progress off");
  return makeMpiChannels(options);
}

std::unique_ptr<MpiSession> chimera::runtime::startMpi(MpiThreads threads) {
  return std::make_unique<RankSession>(threads);
}
