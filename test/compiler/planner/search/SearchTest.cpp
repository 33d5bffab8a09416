//===- SearchTest.cpp - The best plans of a space -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Search.h"
#include "compiler/planner/search/StepBreakdown.h"
#include "test/compiler/planner/search/Questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

namespace chimera::plan {
namespace {

/// A callback for `evaluate` that never rules the choice out.
bool never(double, int64_t) { return false; }

struct SearchCase {
  explicit SearchCase(Question question)
      : question(std::move(question)), space(spaceOf(this->question)),
        evaluator(this->question) {}

  Question question;
  Space space;
  Evaluator evaluator;
};

/// Questions for small machines, with much, little or almost no memory.
std::vector<Question> someQuestions() {
  std::vector<Question> all;
  for (int64_t memory : {1 << 24, 160000, 90000, 60000})
    for (auto [devices, batch] : {std::pair(4, 8), std::pair(6, 12)})
      all.push_back(someQuestion(devices, memory, batch,
                                 static_cast<uint32_t>(memory + devices)));
  all.push_back(someQuestion(4, 90000, 8, 7));
  all.back().pins.withoutFlush = true;
  all.push_back(someQuestion(6, 90000, 12, 9));
  all.back().machine = cost::someNodes(6, 90000, 3);
  all.push_back(someQuestion(6, 90000, 12, 10));
  all.back().machine = cost::someSharedNodes(6, 90000, 3, 2);
  all.push_back(someQuestion(4, 90000, 8, 8));
  all.back().pins.recomputation = Recomputation::All;
  return all;
}

std::string nameOf(const Proposal &proposal) {
  std::string name = nameOf(proposal.choice) + ":";
  for (schedule::Recompute how : proposal.recompute)
    name += how == schedule::Recompute::None ? '.' : 'r';
  return name + std::to_string(static_cast<int>(proposal.policy)) + " " +
         std::to_string(proposal.stepTime) + " " +
         std::to_string(proposal.peakBytes);
}

std::vector<std::string> namesOf(const std::vector<Proposal> &proposals) {
  std::vector<std::string> names;
  for (const Proposal &proposal : proposals)
    names.push_back(nameOf(proposal));
  return names;
}

TEST(SpaceOf, UsesAllDevicesAndTheWholeBatch) {
  SearchCase searchCase(someQuestion(6, 1 << 24, 12));
  std::set<std::string> schemes;
  for (const Choice &choice : searchCase.space.choices) {
    EXPECT_EQ(choice.workers * choice.width, 6);
    EXPECT_EQ(int64_t{choice.width} * choice.microBatches *
                  choice.microBatchSize,
              12);
    EXPECT_FALSE(choice.options.anyOpen());
    schemes.insert(choice.scheme->name);
  }
  EXPECT_EQ(schemes, (std::set<std::string>{"1f1b", "chimera", "gems", "gpipe",
                                            "interleaved-1f1b", "zb-v"}));
  EXPECT_TRUE(searchCase.space.refusals.empty());
}

/// With one stage per worker, interleaved-1f1b is 1f1b, which the space has
/// anyway. If only interleaved-1f1b is pinned, the space does not have 1f1b.
TEST(SpaceOf, HasNoSchemeTwice) {
  auto fewest = [](const Question &question) {
    int32_t stages = INT32_MAX;
    for (const Choice &choice : spaceOf(question).choices)
      if (choice.scheme->name == std::string("interleaved-1f1b"))
        stages = std::min(stages, choice.stages / choice.workers);
    return stages;
  };
  Question question = someQuestion(6, 1 << 24, 12);
  EXPECT_EQ(fewest(question), 2);
  ASSERT_EQ(readSchemes("interleaved-1f1b", question.pins.schemes), "");
  EXPECT_EQ(fewest(question), 1);
}

TEST(SpaceOf, HasWhatIsPinnedAlone) {
  Question question = someQuestion(8, 1 << 24, 16);
  ASSERT_EQ(readSchemes("pipedream, zb-v", question.pins.schemes), "");
  question.pins.workers = {2, 4};
  question.pins.microBatchSizes = {2};
  question.pins.splitBackward = {false};
  Space space = spaceOf(question);
  ASSERT_EQ(space.choices.size(), 4u);
  EXPECT_EQ(nameOf(space.choices[0]), "zb-v, D=2, W=4, N=2, B=2, 4 stages");
  EXPECT_EQ(nameOf(space.choices[3]), "pipedream, D=4, W=2, N=4, B=2");
}

TEST(SpaceOf, GivesTheReasonIfASchemeHasNoChoice) {
  Question question = someQuestion(3, 1 << 24, 4);
  question.pins.workers = {1};
  ASSERT_EQ(readSchemes("gems", question.pins.schemes), "");
  Space space = spaceOf(question);
  EXPECT_TRUE(space.choices.empty());
  ASSERT_EQ(space.refusals.size(), 1u);
  EXPECT_EQ(space.refusals[0].reason,
            "expected a mini-batch that is a multiple of 3 (3 copies of the "
            "model), got 4: take 3 or 6");
}

/// Each number of workers allows other mini-batches. The reason that is
/// reported is the one for the fewest copies. It names the nearest possible
/// mini-batches. If micro-batch sizes are pinned, fewer mini-batches are
/// possible.
TEST(SpaceOf, NamesTheNearestMiniBatches) {
  Question question = someQuestion(8, 1 << 24, 513);
  question.pins.workers = {1, 2, 4};
  Space space = spaceOf(question);
  EXPECT_TRUE(space.choices.empty());
  EXPECT_GT(space.refusals.size(), 2u);
  EXPECT_EQ(space.onlyReason,
            "expected a mini-batch that is a multiple of 2 (2 copies of the "
            "model), got 513: take 512 or 514");
  question.pins.microBatchSizes = {4};
  EXPECT_EQ(spaceOf(question).onlyReason,
            "expected a mini-batch that is a multiple of 8 (2 copies of the "
            "model, micro-batches of 4 samples), got 513: take 512 or 520");
  question.batch = 3;
  EXPECT_EQ(spaceOf(question).onlyReason,
            "expected a mini-batch that is a multiple of 8 (2 copies of the "
            "model, micro-batches of 4 samples), got 3: take 8");
}

TEST(Evaluator, NoStepIsShorterThanItsBound) {
  for (Question &question : someQuestions()) {
    SearchCase searchCase(std::move(question));
    for (const Choice &choice : searchCase.space.choices) {
      // Collect every bound of the step time and the memory that the evaluator
      // passes to the callback.
      std::vector<std::pair<double, int64_t>> bounds;
      Outcome outcome = searchCase.evaluator.evaluate(
          choice, [&](double bound, int64_t peakBytes) {
            bounds.emplace_back(bound, peakBytes);
            return false;
          });
      auto *proposal = std::get_if<Proposal>(&outcome);
      if (!proposal)
        continue;
      // The evaluator passes three bounds. If cores are not shared, the fourth
      // one is the shortest step over the all-reduce policies.
      const auto &node = searchCase.question.machine.network.node;
      EXPECT_EQ(bounds.size(), node && node->cores > 0 ? 3u : 4u);
      for (auto [bound, peakBytes] : bounds) {
        EXPECT_LE(bound, proposal->stepTime) << nameOf(choice);
        EXPECT_LE(peakBytes, proposal->peakBytes) << nameOf(choice);
      }
    }
  }
}

TEST(Evaluator, TakesTheFirstPolicyThatNoOtherBeats) {
  std::vector<Question> questions = someQuestions();
  // Ranks share cores, and all-reduces are large, so that many all-reduces
  // should start late.
  Question &shared = questions.emplace_back(someQuestion(6, 1 << 24, 12, 3));
  shared.machine = cost::someSharedNodes(6, 1 << 24, 6, 3);
  shared.machine.network.node->links.allReduceMessage = {40, 1 << 14,
                                                         schedule::kMebibyte};
  std::set<schedule::AllReducePolicy> taken;
  for (const Question &question : questions) {
    SearchCase free(question);
    std::deque<SearchCase> pinned;
    for (const schedule::NamedPolicy &policy : schedule::kPolicies) {
      Question with = question;
      with.pins.policies = {policy.policy};
      pinned.emplace_back(std::move(with));
    }
    for (const Choice &choice : free.space.choices) {
      Outcome outcome = free.evaluator.evaluate(choice, never);
      const auto *proposal = std::get_if<Proposal>(&outcome);
      if (!proposal)
        continue;
      std::optional<Proposal> first;
      for (const SearchCase &searchCase : pinned) {
        auto one =
            std::get<Proposal>(searchCase.evaluator.evaluate(choice, never));
        if (!first || one.stepTime < first->stepTime)
          first = std::move(one);
      }
      EXPECT_EQ(nameOf(*proposal), nameOf(*first));
      taken.insert(proposal->policy);
    }
  }
  EXPECT_EQ(taken.size(), std::size(schedule::kPolicies));
}

TEST(Evaluator, RecomputesOnlyIfNeeded) {
  int64_t recomputed = 0, partly = 0;
  for (uint32_t seed : {3, 4}) {
    SearchCase searchCase(someQuestion(4, 90000, 8, seed));
    Question free = searchCase.question;
    free.pins.recomputation = Recomputation::None;
    free.machine.memory = 1 << 30;
    Evaluator without(free);
    for (const Choice &choice : searchCase.space.choices) {
      Outcome outcome = searchCase.evaluator.evaluate(choice, never);
      Outcome kept = without.evaluate(choice, never);
      const auto *proposal = std::get_if<Proposal>(&outcome);
      const auto *all = std::get_if<Proposal>(&kept);
      if (!proposal || !all)
        continue;
      EXPECT_LE(proposal->peakBytes, 90000);
      EXPECT_EQ(proposal->recompute.empty(), all->peakBytes <= 90000);
      auto kinds =
          std::ranges::count(proposal->recompute, schedule::Recompute::Early);
      recomputed += kinds > 0;
      partly += kinds > 0 && kinds < choice.stages;
    }
  }
  EXPECT_GT(recomputed, 10);
  EXPECT_GT(partly, 5);
}

TEST(Evaluator, ChoosesTheLeastEagerOfTheFastestPolicies) {
  SearchCase searchCase(someQuestion(4, 1 << 24, 8, 5));
  std::map<schedule::AllReducePolicy, int> chosen;
  for (const Choice &choice : searchCase.space.choices) {
    Outcome outcome = searchCase.evaluator.evaluate(choice, never);
    const auto *proposal = std::get_if<Proposal>(&outcome);
    if (!proposal)
      continue;
    Solution solution = searchCase.evaluator.solutionOf(*proposal);
    schedule::StepPeriods periods(solution.problem, solution.order);
    EXPECT_EQ(periods.periodWith(proposal->policy), proposal->stepTime);
    EXPECT_EQ(stepTime(solution.problem, solution.order).total,
              proposal->stepTime);
    ++chosen[proposal->policy];
    bool isFirst = false;
    for (const schedule::NamedPolicy &policy : schedule::kPolicies) {
      double step = periods.periodWith(policy.policy);
      EXPECT_GE(step, proposal->stepTime);
      isFirst |= policy.policy == proposal->policy;
      if (!isFirst) {
        EXPECT_GT(step, proposal->stepTime);
      }
    }
  }
  EXPECT_EQ(chosen.size(), 3u);
}

TEST(Search, FindsWhatTryingEverythingFinds) {
  int fewer = 0;
  for (Question &question : someQuestions()) {
    SearchCase searchCase(std::move(question));
    SearchSettings everything;
    everything.planCount = searchCase.space.choices.size() + 1;
    Answer all = search(searchCase.space, searchCase.evaluator, everything);
    SearchSettings few;
    few.planCount = 5;
    Answer pruned = search(searchCase.space, searchCase.evaluator, few);
    fewer += pruned.simulated.size() < all.simulated.size();
    std::vector<std::string> expected = namesOf(all.ranked);
    expected.resize(std::min<size_t>(expected.size(), 5));
    EXPECT_EQ(namesOf(pruned.ranked), expected);
    EXPECT_EQ(namesOf(pruned.ofSchemes), namesOf(all.ofSchemes));
    few.threads = 3;
    Answer threaded = search(searchCase.space, searchCase.evaluator, few);
    EXPECT_EQ(namesOf(threaded.ranked), expected);
    EXPECT_EQ(namesOf(threaded.ofSchemes), namesOf(all.ofSchemes));
  }
  EXPECT_GE(fewer, 6);
}

/// With one worker, all schedules take the same time. The table lists only the
/// one that needs the least memory.
TEST(Search, ListsPlansWithoutAPipelineOnce) {
  Question question = someQuestion(2, 1 << 24, 8);
  question.pins.workers = {1};
  ASSERT_EQ(readSchemes("1f1b, gpipe", question.pins.schemes), "");
  question.pins.microBatchSizes = {1};
  SearchCase searchCase(std::move(question));
  Answer answer = search(searchCase.space, searchCase.evaluator, {});
  std::map<double, int64_t> least; // peak bytes by step
  std::set<int64_t> peaks;
  for (const Proposal &proposal : answer.simulated) {
    auto [entry, isNew] =
        least.try_emplace(proposal.stepTime, proposal.peakBytes);
    entry->second = std::min(entry->second, proposal.peakBytes);
    peaks.insert(proposal.peakBytes);
  }
  EXPECT_GT(peaks.size(), 1u);
  ASSERT_EQ(answer.ranked.size(), least.size());
  for (const Proposal &proposal : answer.ranked)
    EXPECT_EQ(proposal.peakBytes, least[proposal.stepTime]);
}

/// The step times and memory peaks of the Pareto front: no other plan is at
/// least as good in both and better in one.
std::set<std::pair<double, int64_t>> frontOf(const Answer &answer) {
  std::set<std::pair<double, int64_t>> front;
  for (const Proposal &one : answer.simulated)
    if (std::ranges::none_of(answer.simulated, [&](const Proposal &other) {
          return other.stepTime <= one.stepTime &&
                 other.peakBytes <= one.peakBytes &&
                 (other.stepTime < one.stepTime ||
                  other.peakBytes < one.peakBytes);
        }))
      front.emplace(one.stepTime, one.peakBytes);
  return front;
}

TEST(Search, KeepsPlansWithLessMemoryIfAsked) {
  for (Question &question : someQuestions()) {
    SearchCase searchCase(std::move(question));
    SearchSettings settings;
    settings.planCount = searchCase.space.choices.size() + 1;
    Answer all = search(searchCase.space, searchCase.evaluator, settings);
    settings.planCount = 2;
    settings.keepParetoFront = true;
    Answer some = search(searchCase.space, searchCase.evaluator, settings);
    EXPECT_EQ(frontOf(some), frontOf(all));
  }
}

TEST(Search, CountsEveryChoiceOnce) {
  SearchCase searchCase(someQuestion(4, 90000, 8, 2));
  size_t last = 0;
  SearchSettings settings;
  settings.planCount = 3;
  settings.progress = [&](size_t done, double) { last = done; };
  Answer answer = search(searchCase.space, searchCase.evaluator, settings);
  EXPECT_EQ(last, searchCase.space.choices.size());
  int64_t choices = 0, simulated = 0;
  for (const OutcomeCounts &counts : answer.outcomeCounts) {
    EXPECT_EQ(counts.choices, counts.simulated + counts.ruledOut +
                                  counts.tooLarge + counts.impossible);
    EXPECT_EQ(counts.smallest.has_value(), counts.tooLarge > 0);
    choices += counts.choices;
    simulated += counts.simulated;
  }
  EXPECT_EQ(choices, std::ssize(searchCase.space.choices));
  EXPECT_EQ(simulated, std::ssize(answer.simulated));
}

TEST(Search, HasNoPlanIfNoneFits) {
  SearchCase searchCase(someQuestion(4, 1000, 8));
  Answer answer = search(searchCase.space, searchCase.evaluator, {});
  EXPECT_TRUE(answer.ranked.empty());
  for (const OutcomeCounts &counts : answer.outcomeCounts)
    EXPECT_GT(counts.smallest->peakBytes, 1000) << counts.scheme->name;
}

TEST(StepBreakdown, SumToTheStep) {
  int shared = 0;
  for (Question &question : someQuestions()) {
    SearchCase searchCase(std::move(question));
    SearchSettings settings;
    settings.planCount = 40;
    for (const Proposal &proposal :
         search(searchCase.space, searchCase.evaluator, settings).ranked) {
      StepBreakdown breakdown = breakdownOf(searchCase.evaluator, proposal);
      double sum = 0;
      for (size_t i = 0; i < breakdown.shares.size(); ++i) {
        const StepShare &share = breakdown.shares[i];
        EXPECT_EQ(static_cast<size_t>(share.part), i);
        EXPECT_GE(share.time, -1e-6 * proposal.stepTime) << share.name;
        sum += share.time;
      }
      EXPECT_NEAR(sum, proposal.stepTime, 1e-9 * proposal.stepTime);
      EXPECT_EQ(breakdown.recomputed > 0,
                breakdown.timeOf(StepPart::Recompute) > 0);
      shared += breakdown.timeOf(StepPart::SharedCores) > 0;
    }
  }
  EXPECT_GT(shared, 10);
}

TEST(StepBreakdown, CountWaitsForSharedCoresByThemselves) {
  // Three workers share one core, and messages take no time. So a step takes
  // about the sum of the three workers' computations. It takes a little less,
  // because the next step starts before this step ends.
  Question question = someQuestion(3, 1 << 24, 6, 4);
  question.machine = cost::someSharedNodes(3, 1 << 24, 3, 1);
  question.pins.workers = {3};
  ASSERT_EQ(readSchemes("1f1b", question.pins.schemes), "");
  question.pins.microBatchSizes = {1};
  SearchCase shared(question);
  question.machine.network.node->cores = 0;
  SearchCase alone(question);
  ASSERT_EQ(shared.space.choices.size(), alone.space.choices.size());
  int compared = 0;
  for (size_t i = 0; i < shared.space.choices.size(); ++i) {
    Outcome with = shared.evaluator.evaluate(shared.space.choices[i], never);
    Outcome without = alone.evaluator.evaluate(alone.space.choices[i], never);
    ASSERT_EQ(with.index(), without.index());
    if (!std::holds_alternative<Proposal>(with))
      continue;
    StepBreakdown slow =
        breakdownOf(shared.evaluator, std::get<Proposal>(with));
    StepBreakdown fast =
        breakdownOf(alone.evaluator, std::get<Proposal>(without));
    EXPECT_EQ(fast.timeOf(StepPart::SharedCores), 0);
    double computed = 0, free = 0;
    for (StepPart part :
         {StepPart::Compute, StepPart::Recompute, StepPart::Imbalance,
          StepPart::Bubble, StepPart::SharedCores}) {
      if (part != StepPart::SharedCores) {
        EXPECT_EQ(slow.timeOf(part), fast.timeOf(part));
      }
      if (part == StepPart::Compute || part == StepPart::Recompute)
        computed += slow.timeOf(part);
      free += slow.timeOf(part);
    }
    EXPECT_LE(free, 3.03 * computed); // times are rounded
    // Without shared cores, a step takes a third of this sum, plus the bubble.
    // So most of the step is time lost to shared cores.
    EXPECT_GT(slow.timeOf(StepPart::SharedCores), computed);
    ++compared;
  }
  EXPECT_EQ(compared,
            2); // one choice with whole backwards, one with split backwards
}

} // namespace
} // namespace chimera::plan
