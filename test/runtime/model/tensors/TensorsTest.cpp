//===- TensorsTest.cpp - LibTorch's threads and memory --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Tensors.h"
#include "runtime/system/ParallelFor.h"
#include "test/runtime/model/SmallModel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

namespace chimera::runtime {
namespace {

using namespace test;

TEST(TensorsTest, threadsAreThoseOfTheCaller) {
  setThreads(1);
  int inOther = 0;
  std::thread([&] {
    setThreads(2);
    inOther = at::get_num_threads();
  }).join();
  EXPECT_EQ(inOther, 2);
  EXPECT_EQ(at::get_num_threads(), 1);
}

TEST(TensorsTest, threadsStayThoseOfTheCaller) {
  // In its first computation on a thread, LibTorch copies the number of threads
  // that any thread has set last. setThreads must prevent this.
  std::thread([&] {
    setThreads(1);
    std::thread([] { setThreads(2); }).join();
    at::ones({100000}).sum();
    EXPECT_EQ(at::get_num_threads(), 1);
  }).join();
  setThreads(1);
}

TEST(TensorsTest, otherLoopsUseTheCallersThreads) {
  auto threadsOf = [](int64_t count) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    int64_t all = 0;
    parallelFor(count, 100, [&](int64_t begin, int64_t end) {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      all += end - begin;
    });
    EXPECT_EQ(all, count);
    return threads.size();
  };
  std::thread([&] {
    setThreads(3);
    EXPECT_EQ(threadsOf(300), 3u);
    EXPECT_EQ(threadsOf(200), 2u);
    EXPECT_EQ(threadsOf(100), 1u);
    setThreads(1);
    EXPECT_EQ(threadsOf(300), 1u);
  }).join();
}

TEST(TensorsTest, countsWhatTheCallerAllocated) {
  countTensorBytes();
  const int64_t before = liveTensorBytes();
  at::Tensor mine = at::zeros({100}, at::kDouble);
  EXPECT_EQ(liveTensorBytes() - before, 800);
  at::Tensor view = mine.narrow(0, 10, 10);
  EXPECT_EQ(liveTensorBytes() - before, 800);

  std::thread([&] {
    EXPECT_EQ(liveTensorBytes(), 0);
    at::Tensor own = at::zeros({3}, at::kDouble);
    EXPECT_EQ(liveTensorBytes(), 24);
    mine.reset(), view.reset(); // counts for the allocating thread
    EXPECT_EQ(liveTensorBytes(), 24);
  }).join();
  EXPECT_EQ(liveTensorBytes(), before);
}

TEST(TensorsTest, tensorsStayAligned) {
  countTensorBytes();
  for (int64_t size : {1, 3, 1000, 1000000})
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(at::empty({size}, at::kFloat).data_ptr()) %
            64,
        0u);
}

TEST(TensorsTest, tensorsOverTheCallersBytesDoNotCount) {
  countTensorBytes();
  const int64_t before = liveTensorBytes();
  std::vector<double> values(50);
  at::Tensor view = at::from_blob(values.data(), {50}, at::kDouble);
  EXPECT_EQ(liveTensorBytes(), before);
}

// Each rank is a thread. All ranks train at the same time. Each must get the
// same result as if it trained alone.
TEST(TensorsTest, ranksTrainAtOnce) {
  program::ProgramT program =
      smallProgram({.width = 32, .context = 32, .dropout = 0.1}, {2, 2});
  auto train = [&](uint64_t index) {
    setThreads(1);
    Line<double> line(program);
    for (uint64_t step = 0; step < 4; ++step) {
      line.forward({step, index});
      line.backward({step, index});
      line.step(step, 1);
    }
    return line.whole(&Line<double>::Part::weights);
  };
  std::vector<std::vector<double>> alone(4), together(4);
  for (uint64_t i = 0; i < 4; ++i)
    alone[i] = train(i);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      together[i] = train(i);
      EXPECT_EQ(liveTensorBytes(), 0);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint64_t i = 0; i < 4; ++i)
    EXPECT_LE(largestDifference(alone[i], together[i]), 1e-12);
  EXPECT_GT(largestDifference(alone[0], alone[1]), 1e-6);
}

} // namespace
} // namespace chimera::runtime
