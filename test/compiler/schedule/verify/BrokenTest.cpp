//===- BrokenTest.cpp - All violations of broken schedules ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/verify/Broken.h"

#include <gtest/gtest.h>
#include <regex>

namespace chimera::schedule {
namespace {

/// Shortens "forward of pipeline 0, stage 0, micro-batch 1" to "F0.1". Does the
/// same if the text does not name the pipeline.
std::string shorten(std::string text) {
  const std::pair<std::string, std::string> kinds[] = {{"weight_gradient", "W"},
                                                       {"input_gradient", "I"},
                                                       {"recompute", "R"},
                                                       {"forward", "F"},
                                                       {"backward", "B"}};
  for (const auto &[name, letter] : kinds) {
    const std::string stage =
        name + R"( of (?:pipeline \d+, )?stage (-?\d+), micro-batch)";
    text = std::regex_replace(text, std::regex(stage + R"(es (\d+) to (\d+))"),
                              letter + "$1.$2-$3");
    text = std::regex_replace(text, std::regex(stage + R"( (-?\d+))"),
                              letter + "$1.$2");
  }
  for (auto [part, letter] :
       {std::pair{", part 0 of 2", "a"}, {", part 1 of 2", "b"}})
    for (size_t at; (at = text.find(part)) != std::string::npos;)
      text.replace(at, 13, letter);
  return text;
}

std::vector<std::string> found(const Case &c) {
  std::vector<std::string> result;
  for (const Violation &violation : verify(c.problem, c.schedule))
    result.push_back(std::string(nameOf(violation.constraint)) + ": " +
                     shorten(violation.message));
  return result;
}

std::vector<Broken> allBroken() {
  std::vector<Broken> all;
  for (std::span<const Broken> list : {brokenOrders(), brokenPieces()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

class BrokenSchedule : public testing::TestWithParam<Broken> {};

TEST_P(BrokenSchedule, HasAllItsViolationsReported) {
  Case c = GetParam().make();
  ASSERT_EQ(check(c.problem), "");
  EXPECT_EQ(found(c), GetParam().expected);
}

/// Every violation has the position of its action, so that a tool can show it.
TEST_P(BrokenSchedule, SaysWhichActionIsWrong) {
  using Constraint = Violation::Constraint;
  Case c = GetParam().make();
  for (const Violation &violation : verify(c.problem, c.schedule)) {
    Constraint constraint = violation.constraint;
    if (violation.index < 0) {
      EXPECT_TRUE(constraint == Constraint::Missing ||
                  constraint == Constraint::Memory ||
                  violation.message.rfind("expected ", 0) == 0)
          << violation.message;
      continue;
    }
    const Action &action =
        c.schedule.workers.at(violation.worker).at(violation.index);
    if (violation.message.find("the update of") == std::string::npos) {
      EXPECT_NE(violation.message.find(describe(c.problem, action)),
                std::string::npos)
          << violation.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verify, BrokenSchedule, testing::ValuesIn(allBroken()),
                         [](const auto &info) { return info.param.name; });

/// The schedules are valid before they are changed.
TEST(BrokenSchedules, StartFromSoundOnes) {
  for (const std::vector<Case> &list : {soundOrders(), soundPieces()})
    for (const Case &c : list)
      EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
  EXPECT_GE(allBroken().size(), 20u);
}

/// Together, the broken schedules violate every constraint.
TEST(BrokenSchedules, BreakEveryConstraint) {
  using Constraint = Violation::Constraint;
  for (Constraint constraint :
       {Constraint::UnknownAction, Constraint::Missing, Constraint::Duplicate,
        Constraint::Placement, Constraint::Order, Constraint::Deadlock,
        Constraint::Slots, Constraint::Memory, Constraint::Period,
        Constraint::Versions}) {
    bool broken = false;
    for (const Broken &each : allBroken())
      for (const std::string &text : each.expected)
        broken |= text.rfind(std::string(nameOf(constraint)) + ": ", 0) == 0;
    EXPECT_TRUE(broken) << nameOf(constraint);
  }
}

} // namespace
} // namespace chimera::schedule
