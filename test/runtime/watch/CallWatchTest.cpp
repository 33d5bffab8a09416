//===- CallWatchTest.cpp - Notices library calls that do not return -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/CallWatch.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// A library whose function `block` returns only after `letGo` has been set.
struct Library {
  void block(CallMark &mark) {
    mark.enter("block");
    letGo.get_future().wait();
    mark.leave();
  }
  std::promise<void> letGo;
};

TEST(CallWatch, TellsOfACallThatDoesNotReturn) {
  Library library;
  CallMark idle, mark;
  std::thread caller([&] { library.block(mark); });
  std::promise<std::string> told;
  {
    CallWatch watch(
        [&] {
          return std::vector{idle.read(), mark.read()};
        },
        100ms, [&](const std::string &reason) { told.set_value(reason); });
    EXPECT_EQ(told.get_future().get(),
              "timed out after 2.1 s waiting for block to return");
  }
  library.letGo.set_value();
  caller.join();
}

/// Each of many calls returns soon, so nothing may be reported, although the
/// thread is in some call almost whenever the watch looks. On a busy machine a
/// call may really last so long that the watch must report it.
TEST(CallWatch, IsSilentWhileCallsReturn) {
  using Clock = std::chrono::steady_clock;
  CallMark mark;
  std::atomic<bool> told{false}, isDone{false};
  Clock::duration longest{0};
  std::thread caller([&] {
    while (!isDone) {
      const Clock::time_point begin = Clock::now();
      mark.enter("test");
      std::this_thread::sleep_for(1ms);
      mark.leave();
      longest = std::max(longest, Clock::now() - begin);
    }
  });
  {
    CallWatch watch([&] { return std::vector{mark.read()}; }, 0ms,
                    [&](const std::string &) { told = true; });
    std::this_thread::sleep_for(kCallMargin + 1s);
  }
  isDone = true;
  caller.join();
  EXPECT_TRUE(!told || longest >= kCallMargin);
}

TEST(CallWatch, EndsAtOnceWhenItIsDropped) {
  CallMark mark;
  mark.enter("block");
  for (std::chrono::milliseconds timeout :
       {std::chrono::milliseconds(1h), std::chrono::milliseconds(kForever)})
    CallWatch([&] { return std::vector{mark.read()}; }, timeout,
              [](const std::string &) {});
  CallWatch([] { return std::vector<CallMark::Call>(); }, 1h,
            [](const std::string &) {});
}
} // namespace
