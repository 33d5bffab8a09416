//===- AgreementTest.cpp - Agreement of all ranks -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Agreement.h"
#include "runtime/control/InProcess.h"

#include <gtest/gtest.h>

#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Lets each of `ranks` ranks call `check`. Returns the error at rank 0.
std::string
faultOfRanks(uint32_t ranks,
             const std::function<void(Control &, uint32_t)> &check) {
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(ranks);
  std::vector<std::string> faults(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        check(*controls[rank], rank);
      } catch (const WaitError &) {
        // Ignore this error: rank 0 aborts the run after the first rank that
        // differs.
      } catch (const std::exception &error) {
        faults[rank] = error.what();
        controls[rank]->abort("done");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t rank = 1; rank < ranks; ++rank)
    EXPECT_EQ(faults[rank], "") << "rank " << rank;
  return faults[0];
}

/// The error of checkAgreement at rank 0, if rank r passes `agreedValues[r]`.
std::string faultOf(const std::vector<std::vector<AgreedValue>> &agreedValues) {
  return faultOfRanks(static_cast<uint32_t>(agreedValues.size()),
                      [&](Control &control, uint32_t rank) {
                        checkAgreement(control, agreedValues[rank], 100s);
                      });
}

TEST(Faults, TheLowestRanksErrorIsReported) {
  auto told = [](const std::vector<std::string> &faults) {
    return faultOfRanks(static_cast<uint32_t>(faults.size()),
                        [&](Control &control, uint32_t rank) {
                          throwFirstError(control, faults[rank], 100s);
                        });
  };
  EXPECT_EQ(told({"", "", ""}), "");
  EXPECT_EQ(told({""}), "");
  EXPECT_EQ(told({"", "second", "third"}), "second");
  EXPECT_EQ(told({"first", "", "third"}), "first");
  EXPECT_EQ(told({"", std::string(1 << 20, 'x')}), std::string(1 << 20, 'x'));
}

TEST(Agreement, HoldsIfAllRanksAreEqual) {
  EXPECT_EQ(faultOf({{{"program", 7}}}), "");
  std::vector<AgreedValue> same = {{"program", 7}, {"seed", 1}};
  EXPECT_EQ(faultOf({same, same, same}), "");
}

TEST(Agreement, NamesTheFirstThatDiffers) {
  std::vector<AgreedValue> same = {{"program", 7}, {"seed", 1}};
  EXPECT_EQ(faultOf({same, same, {{"program", 7}, {"seed", 2}}}),
            "expected the same seed at every rank, but rank 2 has a different "
            "one than rank 0: give all ranks the same files and options");
  EXPECT_EQ(
      faultOf({same, {{"program", 8}, {"seed", 2}}, {{"", 0}, {"", 0}}}),
      "expected the same program at every rank, but rank 1 has a different one "
      "than rank 0: give all ranks the same files and options");
}
} // namespace
