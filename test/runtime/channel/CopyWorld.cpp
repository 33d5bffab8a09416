//===- CopyWorld.cpp - Ranks with devices of CUDA, in one process ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/cuda/Copies.h"
#include "test/runtime/channel/World.h"

#include <thread>

using namespace chimera::runtime;

std::vector<test::World> test::worlds() {
  std::vector<World> all;
  for (World::Kind kind :
       {World::Copies, World::CopiesOnTwo, World::CopiesOfHost})
    for (uint32_t ranks : {1, 2, 3, 5})
      if (kind != World::CopiesOnTwo || (ranks > 1 && cuda::deviceCount() > 1))
        all.push_back({kind, ranks});
  return all;
}

std::vector<test::World> test::worldsOfHosts() { return {}; }

bool test::hasAsynchronousProgress() { return true; }

void test::onEachRank(const World &world,
                      const std::function<void(Rank &)> &body) {
  auto hub = std::make_shared<local::Hub>(world.ranks);
  Communication all = communicationAmong(world.ranks);
  all.groups.push_back({world.ranks, {world.ranks / 2}}); // a group of one rank
  CopyOptions options{.gpus = {}, .scratchBytes = 100000};
  for (uint32_t rank = 0; rank < world.ranks; ++rank) {
    all.pairs.push_back({rank, rank}); // to itself, in a ring of one rank
    options.gpus.push_back(
        world.kind == World::CopiesOnTwo ? static_cast<int>(rank % 2) : 0);
  }
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world.ranks; ++rank)
    threads.emplace_back([&, rank] {
      cuda::CudaDevice device(
          {.ordinal = options.gpus[rank],
           .user = "rank " + std::to_string(rank),
           .worksOnHost = world.kind == World::CopiesOfHost});
      std::unique_ptr<Channels> channels =
          makeCopyChannels(hub, rank, device, options);
      channels->prepare(all);
      std::unique_ptr<Queue> queue = device.makeQueue("compute");
      Rank own{*channels, device, *queue};
      body(own);
    });
  for (std::thread &thread : threads)
    thread.join();
}
