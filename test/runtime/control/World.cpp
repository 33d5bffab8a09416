//===- World.cpp - Ranks for a test of control ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/control/World.h"

#include "runtime/control/InProcess.h"
#ifdef CHIMERA_HAVE_MPI
#include "runtime/control/mpi/Control.h"
#endif

#include <cstdlib>
#include <thread>

using namespace chimera::runtime;

#ifdef CHIMERA_HAVE_MPI
namespace {
bool inMpiJob() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

MpiSession &session() {
  static MpiSession session;
  return session;
}
} // namespace
#endif

std::vector<uint32_t> test::worldSizes() {
#ifdef CHIMERA_HAVE_MPI
  if (inMpiJob())
    return {session().ranks()};
#endif
  return {1, 2, 3, 8};
}

void test::onEachRank(uint32_t ranks,
                      const std::function<void(Control &)> &body) {
#ifdef CHIMERA_HAVE_MPI
  if (inMpiJob())
    return body(*makeMpiControl(session().makeNews()));
#endif
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Control> &control : controls)
    threads.emplace_back([&] { body(*control); });
  for (std::thread &thread : threads)
    thread.join();
}
