//===- World.cpp - Ranks for a test ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/channel/World.h"

#include "runtime/channel/InProcess.h"
#ifdef CHIMERA_HAVE_MPI
#include "runtime/channel/mpi/Session.h"
#endif

#include <cstdlib>
#include <string_view>
#include <thread>

using namespace chimera::runtime;

namespace {
bool inMpiJob() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

#ifdef CHIMERA_HAVE_MPI
MpiThreads threads() {
  const char *text = std::getenv("CHIMERA_TEST_PROGRESS");
  return !text                                 ? MpiThreads::One
         : std::string_view(text) == "in turn" ? MpiThreads::InTurn
                                               : MpiThreads::Several;
}

MpiOptions options() {
  return {.progressThread = threads() != MpiThreads::One};
}

MpiSession &session() {
  static MpiSession session(threads());
  return session;
}
#endif
} // namespace

std::vector<uint32_t> test::worldSizes() {
#ifdef CHIMERA_HAVE_MPI
  if (inMpiJob())
    return {session().ranks()};
#endif
  return {1, 2, 3, 8};
}

bool test::oneRankSuffices() {
#ifdef CHIMERA_HAVE_MPI
  return !inMpiJob() || options().progressThread;
#endif
  return true;
}

void test::onEachRank(uint32_t ranks,
                      const std::function<void(Channels &)> &body) {
#ifdef CHIMERA_HAVE_MPI
  if (inMpiJob()) {
    std::unique_ptr<Channels> channels =
        session().makeChannels(session().makeNews(), options());
    body(*channels);
    return;
  }
#endif
  std::vector<std::unique_ptr<Channels>> all = makeInProcessChannels(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Channels> &channels : all)
    threads.emplace_back([&] { body(*channels); });
  for (std::thread &thread : threads)
    thread.join();
}
