//===- World.cpp - Ranks for a test of channels ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/channel/World.h"

#include "runtime/channel/InProcess.h"
#include "runtime/channel/simulated/Channels.h"
#include "runtime/channel/tcp/Channels.h"
#include "runtime/device/Host.h"
#include "test/runtime/channel/LocalPeerTables.h"
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
  return !text                                 ? MpiThreads::Funneled
         : std::string_view(text) == "in turn" ? MpiThreads::Serialized
                                               : MpiThreads::Multiple;
}

MpiOptions options() {
  return {.progressThread = threads() != MpiThreads::Funneled};
}

MpiSession &session() {
  static const std::unique_ptr<MpiSession> session = startMpi(threads());
  return *session;
}
#endif
} // namespace

std::vector<test::World> test::worlds() {
  std::vector<World> all = worldsOfHosts();
  if (all.front().kind == World::Mpi)
    return all;
  for (uint32_t ranks : {1, 2, 3, 8})
    all.push_back({World::Simulated, ranks});
  return all;
}

std::vector<test::World> test::worldsOfHosts() {
#ifdef CHIMERA_HAVE_MPI
  if (inMpiJob())
    return {{World::Mpi, session().ranks()}};
#endif
  std::vector<World> all;
  for (World::Kind kind : {World::InProcess, World::Tcp, World::Unix})
    for (uint32_t ranks : {1, 2, 3, 8})
      all.push_back({kind, ranks});
  return all;
}

bool test::hasAsynchronousProgress() {
#ifdef CHIMERA_HAVE_MPI
  return !inMpiJob() || options().progressThread;
#endif
  return true;
}

void test::onEachRank(const World &world,
                      const std::function<void(Rank &)> &body) {
  auto run = [&](Channels &channels, Device &device) {
    std::unique_ptr<Queue> queue = device.makeQueue("compute");
    Rank rank{channels, device, *queue};
    body(rank);
  };
#ifdef CHIMERA_HAVE_MPI
  if (world.kind == World::Mpi)
    return run(*session().makeChannels(options()), *makeHostDevice());
#endif
  bool isMesh = world.kind == World::Tcp || world.kind == World::Unix;
  LocalPeerTables peerTables(isMesh ? world.ranks : 0, world.kind == World::Tcp
                                                           ? Hosts::Several
                                                           : Hosts::One);
  std::vector<std::unique_ptr<tcp::Mesh>> meshes;
  std::unique_ptr<simulated::Simulation> simulation;
  std::vector<std::unique_ptr<Channels>> all;
  std::vector<std::unique_ptr<Device>> hosts(world.ranks);
  if (world.kind == World::Simulated) {
    simulation = std::make_unique<simulated::Simulation>(simulated::Options{
        .ranks = world.ranks, .seed = world.ranks, .oneThread = false});
    all = makeSimulatedChannels(*simulation, world.ranks);
  } else {
    if (world.kind == World::InProcess)
      all = makeInProcessChannels(world.ranks);
    for (uint32_t rank = 0; rank < peerTables.listeners.size(); ++rank) {
      meshes.push_back(std::make_unique<tcp::Mesh>(
          peerTables.of(rank), std::move(peerTables.listeners[rank]),
          std::chrono::hours(1), [](uint32_t, const std::string &) {}));
      all.push_back(makeTcpChannels(*meshes.back()));
    }
    for (std::unique_ptr<Device> &device : hosts)
      device = makeHostDevice();
  }
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world.ranks; ++rank)
    threads.emplace_back([&, rank] {
      run(*all[rank], simulation ? simulation->device(rank) : *hosts[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
}
