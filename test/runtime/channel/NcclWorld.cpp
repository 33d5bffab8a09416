//===- NcclWorld.cpp - Ranks with devices of CUDA, over NCCL --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/Channels.h"
#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#ifdef CHIMERA_TEST_ON_GPUS
#include "runtime/control/join/Join.h"
#include "runtime/train/Launch.h"
#include "runtime/train/cuda/SharedDevices.h"
#endif
#include "test/runtime/channel/World.h"

#include <thread>

using namespace chimera::runtime;

namespace {
#ifdef CHIMERA_TEST_ON_GPUS
/// The job of this process, if it was started as a rank of a job. Otherwise
/// null. In a job, ranks may share a GPU.
JoinedJob *joined() {
  static const std::unique_ptr<JoinedJob> own = [] {
    std::optional<Job> job = findJob();
    if (!job || !job->master)
      return std::unique_ptr<JoinedJob>();
    auto made = std::make_unique<JoinedJob>(
        JoinOptions{.store = {job->master->host, job->master->port,
                              job->master->isServed, job->master->run},
                    .rank = job->rank,
                    .ranks = job->ranks});
    made->connect(std::chrono::seconds(60));
    return made;
  }();
  return own.get();
}
#endif
} // namespace

/// In a job, the world with the ranks of the job. Otherwise worlds of threads,
/// with a GPU for each rank.
std::vector<test::World> test::worlds() {
#ifdef CHIMERA_TEST_ON_GPUS
  if (JoinedJob *job = joined())
    return {{World::Nccl, job->ranks()}};
#endif
  std::vector<World> all;
  for (uint32_t ranks : {2, 3, 5})
    if (ranks <= static_cast<uint32_t>(cuda::deviceCount()))
      all.push_back({World::Nccl, ranks});
  return all;
}

std::vector<test::World> test::worldsOfHosts() { return {}; }

bool test::hasAsynchronousProgress() { return true; }

static void runOne(Control &control, int gpu, const test::World &world,
                   const std::function<void(test::Rank &)> &body) {
  cuda::CudaDevice device(
      {.ordinal = gpu, .user = "rank " + std::to_string(control.rank())});
#ifdef CHIMERA_TEST_ON_GPUS
  findGpuAssignment(device, control, std::chrono::seconds(100));
#endif
  std::unique_ptr<Channels> channels = makeNcclChannels(
      device, control,
      {.timeout = std::chrono::seconds(100), .scratchBytes = 100000});
  channels->prepare(test::communicationAmong(world.ranks));
  std::unique_ptr<Queue> queue = device.makeQueue("compute");
  queue->reserveForLoads(1, uint64_t(8) << 20);
  test::Rank own{*channels, device, *queue};
  // A rank must not end while another rank still runs an operation that uses
  // memory of both ranks. Also, each rank must see its own failure before the
  // end of another rank causes a further one. The other ranks may take longer
  // than a single wait.
  constexpr std::chrono::seconds kPatience(300);
  barrier(control, kPatience, "the ranks of a test");
  body(own);
  barrier(control, kPatience, "the end of a test");
}

void test::onEachRank(const World &world,
                      const std::function<void(Rank &)> &body) {
#ifdef CHIMERA_TEST_ON_GPUS
  // Do not free blocks. Freeing memory waits for the GPUs of all ranks of the
  // process, so it would wait for messages that this rank has not sent yet.
  stopFreeingBlocks();
  if (JoinedJob *job = joined())
    return runOne(job->control(),
                  static_cast<int>(job->rank()) % cuda::deviceCount(), world,
                  body);
#endif
  std::vector<std::unique_ptr<Control>> controls =
      makeInProcessControls(world.ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world.ranks; ++rank)
    threads.emplace_back([&, rank] {
      runOne(*controls[rank], static_cast<int>(rank), world, body);
    });
  for (std::thread &thread : threads)
    thread.join();
}
