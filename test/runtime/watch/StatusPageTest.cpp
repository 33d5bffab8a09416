//===- StatusPageTest.cpp - The status of every rank ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/StatusPage.h"

#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#include "runtime/watch/SharedFile.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr auto kTimeout = 100s;
using Ranks = std::vector<uint32_t>;

/// Makes the status pages of ranks 0, 1 and 2 on one host. Rank `alone` cannot
/// open the page of rank 0. Rank 3 is on another host.
std::vector<std::unique_ptr<StatusPage>> makePages(uint32_t alone) {
  auto controls = makeInProcessControls(4);
  std::vector<std::unique_ptr<StatusPage>> pages(3);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Control &control = *controls[rank];
      if (rank != alone) {
        pages[rank] =
            std::make_unique<StatusPage>(control, Ranks{0, 1, 2}, kTimeout);
        return;
      }
      receiveValue<SharedFile::Location>(control, 0, kTimeout);
      sendValue(control, 0, uint8_t(0), kTimeout);
      std::vector<std::byte> has(3);
      receiveLarge(control, 0, has, kTimeout);
    });
  for (std::thread &thread : threads)
    thread.join();
  return pages;
}

TEST(StatusPage, IsSharedByTheRanksOfAHost) {
  auto pages = makePages(UINT32_MAX);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(pages[rank]->sharingRanks(), (Ranks{0, 1, 2}));
    EXPECT_EQ(pages[0]->of(rank).pid.load(), getpid());
    pages[rank]->of(rank).setPosition(rank, 7);
  }
  EXPECT_EQ(pages[0]->of(2).step.load(), 2u);
  EXPECT_EQ(pages[2]->of(1).step.load(), 1u);
  EXPECT_EQ(pages[0]->of(3).pid.load(), 0) << "it is on another host";
}

TEST(StatusPage, KnowsWhatTheRanksOfAHostUse) {
  auto pages = makePages(UINT32_MAX);
  EXPECT_EQ(pages[0]->use().measured, 0u);
  pages[0]->of(0).setUse({.residentBytes = 70, .deviceBytes = 5});
  pages[1]->of(1).setUse({.residentBytes = 90, .waiting = 0.25, .measured = 1});
  pages[2]->of(2).setUse({.residentBytes = 80, .waiting = 0.75, .measured = 1});
  for (const auto &page : pages) {
    const StepUse use = page->use();
    EXPECT_EQ(use.residentBytes, 90u);
    EXPECT_EQ(use.deviceBytes, 5u);
    EXPECT_EQ(use.waiting, 0.5);
    EXPECT_EQ(use.measured, 2u);
  }
}

TEST(StatusPage, IsSharedByThoseThatCanOpenIt) {
  auto pages = makePages(1);
  EXPECT_EQ(pages[0]->sharingRanks(), (Ranks{0, 2}));
  EXPECT_EQ(pages[2]->sharingRanks(), (Ranks{0, 2}));
  EXPECT_EQ(pages[0]->of(1).pid.load(), 0);
}

TEST(StatusPage, OfARankThatCannotOpenItIsItsOwn) {
  auto controls = makeInProcessControls(2);
  std::unique_ptr<StatusPage> page;
  std::thread rank1([&] {
    page = std::make_unique<StatusPage>(*controls[1], Ranks{0, 1}, kTimeout);
  });
  // Send rank 1 a location that it cannot open, as if the file were in another
  // container.
  SharedFile::Location location = SharedFile::make(4096).location();
  sendValue(*controls[0], 1, location, kTimeout);
  EXPECT_EQ(receiveValue<uint8_t>(*controls[0], 1, kTimeout), 0);
  sendLarge(*controls[0], 1, std::vector<std::byte>(2, std::byte(1)), kTimeout);
  rank1.join();
  EXPECT_EQ(page->sharingRanks(), Ranks{1});
  EXPECT_EQ(page->of(0).pid.load(), 0);
  EXPECT_EQ(page->of(1).pid.load(), getpid());
}
} // namespace
