//===- Evaluate.h - What a plan takes ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_EVALUATE_H
#define CHIMERA_COMPILER_PLAN_EVALUATE_H

#include "compiler/plan/Cut.h"
#include "compiler/plan/Space.h"
#include "compiler/schedule/StepTime.h"

#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <variant>

namespace chimera::plan {

/// A choice, and what was decided for it.
struct Proposal {
  Choice choice;
  /// Empty (nothing is recomputed), or a word for each stage.
  std::vector<schedule::Recompute> recompute;
  schedule::AllReducePolicy policy;
  double step; ///< ns, the mean of many (StepTime.h)
  /// Of the worker that takes most. That is Memory.h's peak with two changes: a
  /// program has places for all sums of gradients from its start, and places
  /// for losses.
  int64_t peakBytes;
  int32_t peakWorker;
};

/// Nothing that may be recomputed makes the plan fit.
struct TooLarge {
  int64_t peakBytes; ///< at least, of the worker that holds most
};
/// The choice was left out: no step of it is shorter than `bound`, ns, and of
/// that IsHopeless said that it is of no interest.
struct Hopeless {
  double bound;
};
/// The choice's scheme has no plan.
struct Impossible {
  std::string reason;
};
using Outcome = std::variant<Proposal, TooLarge, Hopeless, Impossible>;

/// Says that a plan is of no interest whose steps take no less than `bound`, in
/// nanoseconds, and whose largest worker holds `peakBytes`.
using IsHopeless = std::function<bool(double bound, int64_t peakBytes)>;

/// The problem of a proposal, and its order with recomputes.
struct Solution {
  std::vector<CutStage> stages;
  schedule::Problem problem;
  schedule::Schedule order;
};

/// Evaluates choices of one question, which must outlive it. Its functions may
/// run on several threads at a time.
class Evaluator {
public:
  explicit Evaluator(const Question &question);

  /// The policy is the first of kPolicies that no other beats. Where the memory
  /// is too small and stages may be recomputed, workers that hold too much give
  /// up as few of their largest stashes as may be enough, the model is cut
  /// again so that all stages take alike, and so on until all fit.
  Outcome evaluate(const Choice &choice, const IsHopeless &isHopeless) const {
    return evaluate(choice, isHopeless, question.machine.memory,
                    question.pins.recomputation);
  }
  /// The same with less memory than the machine has, or what may be recomputed
  /// other than what is pinned.
  Outcome evaluate(const Choice &choice, const IsHopeless &isHopeless,
                   int64_t memory, Recomputation allowed) const;

  /// A time to expect of the choice's steps, ns, with the bubbles of one
  /// pipeline: what is promising is evaluated first.
  double guess(const Choice &choice) const;

  /// Requires that `evaluate` made `proposal`.
  Solution solve(const Proposal &proposal) const;

private:
  /// The stages of a choice, and what it asks its scheme for.
  struct Asked {
    std::vector<CutStage> stages;
    schedule::Request request;
  };
  Asked askFor(const Choice &choice,
               const std::vector<schedule::Recompute> &recompute,
               int64_t parts = 1) const;
  /// Without the order.
  std::variant<Solution, Impossible>
  solve(const Choice &choice, const schedule::Plan &plan,
        const std::vector<schedule::Recompute> &recompute) const;
  /// Recomputes until `proposal` fits, and says what it holds; or why it does
  /// not.
  std::variant<Solution, Impossible, TooLarge>
  makeFit(schedule::Plan plan, int64_t memory, Recomputation allowed,
          Proposal &proposal) const;
  /// Chooses the policy of `proposal`, and says what a step takes.
  void setStep(Solution &solution, const IsHopeless &isHopeless,
               Proposal &proposal) const;

  /// What the model takes for the choice's micro-batches in so many parts.
  const LayerTable &tableOf(const Choice &choice, int64_t parts = 1) const;
  /// The choice's stages where none is recomputed. Many choices differ in
  /// nothing that matters to them.
  const std::vector<CutStage> &wholeCut(const Choice &choice,
                                        int64_t parts) const;

  const Question &question;
  mutable std::mutex mutex; ///< for what follows
  /// By B and the parts of a backward.
  mutable std::map<std::pair<int32_t, int64_t>, LayerTable> tables;
  /// By B, the number of stages, and the parts of a backward.
  mutable std::map<std::tuple<int32_t, int32_t, int64_t>, std::vector<CutStage>>
      wholeCuts;
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_EVALUATE_H
