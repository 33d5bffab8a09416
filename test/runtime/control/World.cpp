//===- World.cpp - Ranks for a test of control ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/control/World.h"

#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#include "runtime/control/tcp/Control.h"
#include "test/runtime/channel/LocalPeerTables.h"

#include <cstdlib>
#include <thread>

using namespace chimera::runtime;

void test::PrintTo(const World &world, std::ostream *stream) {
  constexpr const char *kNames[] = {"InProcess", "Tcp"};
  *stream << kNames[world.kind] << world.ranks;
}

std::vector<test::World> test::worlds() {
  std::vector<World> all;
  for (World::Kind kind : {World::InProcess, World::Tcp})
    for (uint32_t ranks : {1, 2, 3, 8})
      all.push_back({kind, ranks});
  return all;
}

void test::onEachRank(const World &world,
                      const std::function<void(Control &)> &body,
                      WhenToLeave leave) {
  LocalPeerTables peerTables(world.kind == World::Tcp ? world.ranks : 0);
  std::vector<std::unique_ptr<Control>> controls;
  if (world.kind == World::InProcess)
    controls = makeInProcessControls(world.ranks);
  controls.resize(world.ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world.ranks; ++rank)
    threads.emplace_back([&, rank] {
      // Construct the controls on threads, because their constructors wait for
      // each other.
      if (world.kind == World::Tcp)
        controls[rank] = std::make_unique<TcpControl>(
            peerTables.of(rank), std::move(peerTables.listeners[rank]),
            std::chrono::hours(1));
      // No rank may leave before all ranks are connected.
      barrier(*controls[rank], kTimeout, "all ranks");
      body(*controls[rank]);
      if (leave == WhenToLeave::AtOnce)
        controls[rank].reset();
    });
  for (std::thread &thread : threads)
    thread.join();
}
