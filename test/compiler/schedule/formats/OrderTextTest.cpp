//===- OrderTextTest.cpp - Orders as text ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/OrderText.h"
#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/model/Recompute.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

std::string lineOf(const Case &c, int32_t worker) {
  return OrderText(c.problem.workers, c.problem.pipelines, c.problem.updates)
      .write(c.schedule, worker);
}

/// Writes the order of `c` as text, and reads it back.
Schedule readBack(const Case &c) {
  OrderText text(c.problem.workers, c.problem.pipelines, c.problem.updates);
  Schedule schedule;
  bool saySlots = false;
  std::vector<std::vector<int64_t>> slots;
  for (int32_t w = 0; w < c.problem.workers; ++w) {
    std::string written = text.write(c.schedule, w);
    OrderLine line;
    std::optional<TextError> error = text.read(w, written, line);
    EXPECT_FALSE(error) << written << ": " << error->message;
    schedule.workers.push_back(line.actions);
    slots.push_back(line.slots);
    saySlots |= line.hasSlots;
    if (line.body)
      schedule.bodies.push_back(*line.body);
    EXPECT_EQ(line.wordStarts.size(), line.actions.size());
    for (size_t i = 0; i < line.wordStarts.size(); ++i) {
      uint32_t start = line.wordStarts[i];
      EXPECT_TRUE(start == 0 || written[start - 1] == ' ');
      EXPECT_NE(written.find_first_of("FBIWR", start), std::string::npos);
    }
  }
  if (saySlots)
    schedule.slots = slots;
  return schedule;
}

void expectTheSame(const Case &c) {
  Schedule read = readBack(c);
  EXPECT_EQ(read.workers, c.schedule.workers);
  EXPECT_TRUE(read.bodies == c.schedule.bodies);
  EXPECT_EQ(read.slots, c.schedule.slots);
  auto stages = static_cast<int32_t>(c.problem.stages.size());
  EXPECT_EQ(splitsOf(read, stages, c.problem.microBatches()).simplified(),
            c.problem.splits);
}

TEST(OrderText, IsReadAsItIsWritten) {
  for (const Scheme &scheme : schemes())
    for (int32_t d : {1, 2, 3, 4, 8})
      for (int32_t n : {1, d, 2 * d + 1})
        for (const Choice &choice : choices(scheme, d))
          for (bool split : {false, true}) {
            if (!canPlan(scheme, d, n, choice))
              continue;
            SCOPED_TRACE(nameOf(scheme, d, n, choice));
            PlanOrError made = makePlan(
                scheme, requestFor(scheme, d, n, choice, {2, 4, 2, 2}, split));
            if (!made.plan)
              continue;
            Case c = makeCase(scheme.name, d, n, {2, 4, 2, 2}, split, choice);
            expectTheSame(c);
            for (Recompute how : {Recompute::Early, Recompute::Fused}) {
              c.problem.recompute.assign(c.problem.stages.size(), how);
              Case again = c;
              again.schedule = insertRecompute(c.problem, c.schedule);
              expectTheSame(again);
            }
          }
}

TEST(OrderText, WritesNoMoreThanIsNeeded) {
  EXPECT_EQ(lineOf(makeCase("1f1b", 2, 2), 0), "F0 F1 B0 B1");
  EXPECT_EQ(lineOf(makeCase("1f1b", 2, 2, {1, 2, 1, 1}, true), 1),
            "F0 I0 W0 F1 I1 W1");
  EXPECT_EQ(lineOf(makeCase("interleaved-1f1b", 2, 2, {}, false, {{}, 2}), 0),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  // In Chimera, a worker has only one stage of each pipeline, so the text names
  // no stages.
  EXPECT_EQ(lineOf(makeCase("chimera", 4, 4), 0),
            "F0 . F1 F2 B2 F3 B3 B0 . B1");
  EXPECT_EQ(lineOf(makeCase("chimera", 2, 2), 0), ".0 F0 F1 B1 B0");
  EXPECT_EQ(lineOf(makeCase("pipedream", 2, 2), 0),
            "F0 | F1 B0 F2 B1 | F1 B0 B1");
}

/// Checks that reading `text` fails with an error at the word that begins at
/// `at`.
void refuse(const Case &c, int32_t worker, const std::string &text, size_t at,
            const std::string &message) {
  SCOPED_TRACE(text);
  OrderLine line;
  std::optional<TextError> error =
      OrderText(c.problem.workers, c.problem.pipelines, c.problem.updates)
          .read(worker, text, line);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->offset, at);
  EXPECT_NE(error->message.find(message), std::string::npos) << error->message;
}

TEST(OrderText, IsRefusedAtTheWordThatIsWrong) {
  Case c = makeCase("1f1b", 2, 2);
  refuse(c, 0, "F0 X1", 3, "expected a word such as F0");
  refuse(c, 0, "F0 F", 3, "got F");
  refuse(c, 0, "F0 F1F2", 3, "got F1F2");
  refuse(c, 0, "F0 F99999999999", 3,
         "expected numbers below 2^31, got F99999999999");
  refuse(c, 0, "F0  F2", 4, "expected a micro-batch below 2, got 2");
  refuse(c, 0, "F0 1F1", 3, "expected a stage that worker 0 has (0), got 1");
  refuse(c, 0, "F0 .2147483647 .2", 3, "expected less than 2^31 slots");
  refuse(c, 0, "F0-2147483647", 0, "expected F0, because each forward");
  refuse(c, 0, std::string(100, 'F'), 0, "got " + std::string(40, 'F'));
  refuse(c, 0, "F0-1", 0, "expected F0, because each forward");
  refuse(c, 0, "F0 B0.0", 3, "expected B0, because each backward");
  refuse(c, 0, "F0 B0-1", 3, "expected B0, because each backward");
  refuse(c, 0, "F0 | B0", 3, "expected no |");

  c = makeCase("interleaved-1f1b", 2, 2, {}, false, {{}, 2});
  refuse(c, 1, "1F0 F1", 4,
         "expected a stage before F1, one of 1, 3, because worker 1 has "
         "several");

  // If there are two pipelines, the error names the pipeline.
  c = makeCase("chimera", 2, 2);
  refuse(c, 0, "2F0", 0,
         "expected a stage that worker 0 has of pipeline 0 (0), got 2");

  c = makeCase("pipedream", 2, 2);
  refuse(c, 0, "F0 F1 B0 B1", 11,
         "expected a prologue, a step and an epilogue");
  refuse(c, 0, "F0 | B0 | B1 | B0", 13, "expected at most two |, got a third");
  refuse(c, 0, "F0 .2 |", 3, "expected no idle slots");
  refuse(c, 0, "F0 | F3 | F2", 10, "expected a micro-batch below 2, got 2");

  c = makeCase("chimera", 2, 8, {2, 4, 2, 2}, false,
               chimeraWith(2, Concatenation::Doubling));
  refuse(c, 0, "F0", 0,
         "expected F0-1, because this forward of the direction has these "
         "micro-batches");
  refuse(c, 0, "F0-1 F1", 5,
         "expected no forward that begins with micro-batch");

  c = makeCase("chimera", 2, 8, {2, 4, 2, 2}, false,
               chimeraWith(2, Concatenation::Halving));
  refuse(c, 0, "F0 B0", 3, "expected B0.0 to B0.1");
  refuse(c, 0, "F0 B0.2", 3, "expected B0.0 to B0.1");
}

} // namespace
} // namespace chimera::schedule
