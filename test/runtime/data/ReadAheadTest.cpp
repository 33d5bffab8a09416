//===- ReadAheadTest.cpp - Reads a rank's samples ahead of time -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ReadAhead.h"

#include "runtime/random/Mix.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

namespace chimera::runtime {
namespace {

using namespace std::chrono_literals;

/// Bytes that depend on all arguments of a load. Counts loads. `before`, if
/// set, is called first.
class Numbers final : public DataSource {
public:
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    ++loads;
    if (before)
      before(microBatch);
    const uint64_t key =
        mix({static_cast<uint64_t>(kind), microBatch.step, microBatch.index,
             microBatch.part, microBatch.parts});
    for (size_t i = 0; i < output.size(); ++i)
      output[i] = static_cast<std::byte>(mix({key, i}));
  }

  std::atomic<int> loads = 0;
  std::function<void(MicroBatch)> before;
};

/// The loads of a step: `count` of tokens, of two parts of a micro-batch each,
/// and each followed by one of labels.
std::vector<PlannedLoad> loadsOf(uint64_t step, uint64_t count,
                                 uint64_t bytes = 300) {
  std::vector<PlannedLoad> loads;
  for (uint64_t index = 0; index < count; ++index) {
    const MicroBatch first{.step = step, .index = index, .parts = 2};
    MicroBatch second = first;
    second.part = 1;
    loads.push_back(
        {program::ValueKind::Tokens, {first, second}, bytes + 8 * index});
    loads.push_back(
        {program::ValueKind::Labels, {{.step = step, .index = index}}, 40});
  }
  return loads;
}

uint64_t blockBytesOf(const std::vector<PlannedLoad> &loads,
                      uint64_t alignment = kBlockAlignment) {
  uint64_t bytes = 0;
  for (const PlannedLoad &load : loads)
    bytes += blockBytes(load.bytes, alignment);
  return bytes;
}

ReadAhead::Plan planOf(uint64_t firstStep, uint64_t endStep,
                       uint64_t count = 3) {
  return [=](uint64_t number) -> std::optional<ReadAhead::Section> {
    if (firstStep + number >= endStep)
      return std::nullopt;
    return ReadAhead::Section{.step = firstStep + number,
                              .loads = loadsOf(firstStep + number, count)};
  };
}

std::vector<std::byte> bytesFromSource(const PlannedLoad &load) {
  Numbers source;
  std::vector<std::byte> bytes(load.bytes);
  loadPieces(source, load, bytes);
  return bytes;
}

void expectLoad(ReadAhead &ahead, const PlannedLoad &load) {
  std::vector<std::byte> bytes(load.bytes);
  ahead.load(load, bytes);
  EXPECT_EQ(bytes, bytesFromSource(load))
      << load.pieces[0].step << " " << load.pieces[0].index;
}

/// Waits until `condition` holds. Fails after 100 s.
template <typename Condition> void await(const Condition &condition) {
  for (int i = 0; i < 100'000 && !condition(); ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(condition());
}

// There is so little memory that the thread often waits, and that loads of
// other sizes need the memory of unused blocks.
TEST(ReadAhead, GivesWhatTheSourceGives) {
  for (uint64_t bytes : {400, 700, 1000, 5000}) {
    Numbers source;
    ReadAhead ahead(source, 2, bytes);
    ahead.begin(5, planOf(5, 60));
    for (uint64_t step = 5; step < 60; ++step) {
      ahead.reach(step);
      for (const PlannedLoad &load : loadsOf(step, 3))
        expectLoad(ahead, load);
    }
    EXPECT_EQ(source.loads, 55 * 9) << bytes;
  }
}

// No more memory is used than allowed, and none is allocated after the first
// steps.
TEST(ReadAhead, ExchangesBlocks) {
  Numbers source;
  constexpr uint64_t kAlignment = 128;
  ReadAhead ahead(source, 2, 2 * blockBytesOf(loadsOf(0, 3), kAlignment),
                  kAlignment);
  ahead.begin(0, planOf(0, 50));
  std::map<size_t, Block> ours; // by number of the load
  std::set<std::byte *> seen;
  for (uint64_t step = 0; step < 50; ++step) {
    ahead.reach(step);
    const std::vector<PlannedLoad> loads = loadsOf(step, 3);
    for (size_t k = 0; k < loads.size(); ++k) {
      if (step == 0)
        seen.insert((ours[k] = makeBlock(loads[k].bytes, kAlignment)).get());
      std::byte *const before = ours[k].get();
      ahead.load(loads[k], ours[k]);
      EXPECT_NE(ours[k].get(), before);
      EXPECT_EQ(
          std::vector<std::byte>(ours[k].get(), ours[k].get() + loads[k].bytes),
          bytesFromSource(loads[k]));
      seen.insert(ours[k].get());
    }
  }
  EXPECT_EQ(source.loads, 50 * 9);
  EXPECT_LE(seen.size(), 3 * loadsOf(0, 3).size());
  // A load that is not planned fills the block that is given.
  const PlannedLoad other = loadsOf(99, 1)[0];
  std::byte *const before = ours[0].get();
  ahead.load(other, ours[0]);
  EXPECT_EQ(ours[0].get(), before);
  EXPECT_EQ(std::vector<std::byte>(before, before + other.bytes),
            bytesFromSource(other));
}

TEST(ReadAhead, ReadsOnlySomeStepsAhead) {
  Numbers source;
  ReadAhead ahead(source, 2, 100 * blockBytesOf(loadsOf(0, 3)));
  ahead.begin(10, planOf(10, 100));
  await([&] { return source.loads == 3 * 9; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(source.loads, 3 * 9); // of the steps 10, 11 and 12
  ahead.reach(11);
  await([&] { return source.loads == 4 * 9; });
  // It reads less if its memory is full.
  Numbers other;
  ReadAhead small(other, 2, 2 * blockBytesOf(loadsOf(0, 3)));
  small.begin(10, planOf(10, 100));
  await([&] { return other.loads == 2 * 9; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(other.loads, 2 * 9);
}

TEST(ReadAhead, ThrowsAnErrorAtItsLoad) {
  Numbers source;
  source.before = [](MicroBatch microBatch) {
    if (microBatch.step == 1 && microBatch.index == 1)
      throw std::runtime_error("the disk is gone");
  };
  ReadAhead ahead(source, 2, 5000);
  ahead.begin(0, planOf(0, 9));
  // The error happens before the first load is asked for.
  await([&] { return source.loads == 9 + 4; });
  for (const PlannedLoad &load : loadsOf(0, 3))
    expectLoad(ahead, load);
  const std::vector<PlannedLoad> next = loadsOf(1, 3);
  expectLoad(ahead, next[0]);
  expectLoad(ahead, next[1]);
  std::vector<std::byte> bytes(next[2].bytes);
  try {
    ahead.load(next[2], bytes);
    ADD_FAILURE() << "expected an error";
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(), "the disk is gone");
  }
}

TEST(ReadAhead, OtherLoadsComeFromTheSource) {
  Numbers source;
  ReadAhead ahead(source, 2, 5000);
  expectLoad(ahead, loadsOf(3, 1)[0]); // before a plan
  ahead.begin(0, planOf(0, 9));
  expectLoad(ahead, loadsOf(0, 3)[0]);
  expectLoad(ahead, loadsOf(7, 3)[2]); // not planned next
  expectLoad(ahead, loadsOf(0, 3)[1]);
  expectLoad(ahead, loadsOf(0, 3)[4]);
  // A new plan works again. It drops what was read.
  ahead.begin(20, planOf(20, 22));
  for (uint64_t step : {20, 21, 22, 23}) // the plan has two of these
    for (const PlannedLoad &load : loadsOf(step, 3))
      expectLoad(ahead, load);
}

TEST(ReadAhead, LoadsLargerThanTheMemoryComeFromTheSource) {
  Numbers source;
  ReadAhead ahead(source, 2, 100);
  ahead.begin(0, planOf(0, 3));
  for (uint64_t step : {0, 1, 2})
    for (const PlannedLoad &load : loadsOf(step, 3))
      expectLoad(ahead, load);
}

TEST(ReadAhead, CallsAfterTheLoadsOfASection) {
  Numbers source;
  std::atomic<int> calls = 0;
  ReadAhead ahead(source, 1, 5000);
  ahead.begin(0, [&](uint64_t number) -> std::optional<ReadAhead::Section> {
    if (number == 4)
      return std::nullopt;
    return ReadAhead::Section{.step = number,
                              .loads = loadsOf(number, number % 2),
                              .afterLoads = [&, number] {
                                EXPECT_EQ(calls, static_cast<int>(number));
                                ++calls;
                                throw std::runtime_error("ignored");
                              }};
  });
  await([&] { return calls == 2; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(calls, 2);
  for (uint64_t step : {0, 1, 2, 3}) {
    ahead.reach(step);
    for (const PlannedLoad &load : loadsOf(step, step % 2))
      expectLoad(ahead, load);
  }
  await([&] { return calls == 4; });
}

// The thread ends while it waits for space, waits for the rank, or reads.
TEST(ReadAhead, EndsAtAnyTime) {
  for (int round = 0; round < 50; ++round) {
    Numbers source;
    source.before = [&](MicroBatch) { std::this_thread::sleep_for(100us); };
    ReadAhead ahead(source, round % 2 ? 2 : 1000, round % 3 ? 700 : 1 << 20);
    ahead.begin(0, planOf(0, 1000));
    for (int i = 0; i < round % 5; ++i)
      expectLoad(ahead, loadsOf(0, 3)[static_cast<size_t>(i)]);
    std::this_thread::sleep_for(std::chrono::microseconds(40 * round));
  }
}

// A slow source is used as soon as it has read, and the rank waits for it.
TEST(ReadAhead, TheRankWaitsForASlowSource) {
  Numbers source;
  source.before = [&](MicroBatch) { std::this_thread::sleep_for(2ms); };
  ReadAhead ahead(source, 2, 5000);
  ahead.begin(0, planOf(0, 8));
  for (uint64_t step = 0; step < 8; ++step) {
    ahead.reach(step);
    for (const PlannedLoad &load : loadsOf(step, 3))
      expectLoad(ahead, load);
  }
  EXPECT_EQ(source.loads, 8 * 9);
}

} // namespace
} // namespace chimera::runtime
